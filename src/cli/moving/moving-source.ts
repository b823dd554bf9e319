import type { HistoryInfo } from '../../shared/diy/history-info.ts';
import type { Decrypt } from './stack-secrets.ts';

/** As a deployment document. */
export interface SourceState {
  /** For messages. */
  readonly name: string;
  /** Stored size in the source; null if the source does not say. */
  readonly bytes: number | null;
  /** Reads the state from the beginning; empty if the stack has no state. Throws TransferError. */
  document(): AsyncIterable<Buffer>;
}

/** An update of a stack, and the state that it left. */
export interface SourceEntry {
  /** Its identity in the source. */
  readonly id: string;
  /** Its version in the source; null if the source does not number them. */
  readonly stackVersion: number | null;
  /** The id of its update in the source, which the update keeps here if the id is free; null if the source has none. */
  readonly updateId: string | null;
  readonly state: SourceState;
  /** Throws TransferError. */
  info(): Promise<HistoryInfo>;
  /** Its engine events, as batches `{"events": […]}`; null if the source keeps none. */
  readonly events: (() => AsyncIterable<Buffer>) | null;
}

/** A preview in the history of a stack. */
export interface SourcePreview extends Pick<SourceEntry, 'id' | 'info' | 'events'> {
  /** The version that it started from; null if the source does not say. */
  readonly baseVersion: number | null;
  /** The first update that began later; null if there is none. */
  readonly before: string | null;
}

export interface FormerName {
  readonly project: string;
  readonly stack: string;
}

export interface SourceContent {
  readonly state: SourceState & { readonly modifiedAt: Date };
  /** Possibly, no update of the history has left the newest state. */
  readonly mayHaveUnrecordedState: boolean;
  /** Whether no update has left the newest state; undefined: unknown. */
  readonly isInitial?: boolean;
  /** Oldest first. */
  readonly history: readonly SourceEntry[];
  /** The ids of the history and of updates whose states the source no longer has, oldest first; undefined: only of the history. */
  readonly order?: readonly string[];
  /** Ended, oldest first; none if the source keeps none. */
  readonly previews?: readonly SourcePreview[];
  /** Parts of the stack that cannot be imported. */
  readonly notes: readonly string[];
  /** Parts that the source may have, but does not list. */
  readonly gaps?: readonly string[];
  /** Why the stack cannot be imported now; null if it can. */
  readonly fault: string | null;
  /** Whether an update is running there, whose state is not in the history. */
  readonly isBusy: boolean;
  /** The tags, not checked. Throws TransferError. */
  tags(): Promise<object>;
  /** Before renames, if the source tells them. */
  readonly formerNames?: readonly FormerName[];
  /** The damage of these entries or previews, because of which no part of the stack may be imported; null if there is none. */
  readonly check: ((entries: readonly (SourceEntry | SourcePreview)[]) => Promise<string | null>) | null;
  /** For the source's own keys; null if it has none. */
  readonly decrypt: Decrypt | null;
}

export interface SourceStack {
  /** `project/stack`, or only the stack in a folder without projects. */
  readonly name: string;
  /** Null in a folder without projects. */
  readonly project: string | null;
  readonly stack: string;
  /** Reads the history of the stack. Throws TransferError. */
  open(): Promise<SourceContent>;
}

export interface SourceListing {
  /** By name. */
  readonly stacks: readonly SourceStack[];
  /** Files that are in neither layout of the source. */
  readonly strays: readonly string[];
  /** Sentences about the source as a whole. */
  readonly remarks: readonly string[];
  /** Objects besides stacks are not imported. */
  readonly leftOut: readonly string[];
  /** Stacks that the source lacks or may lack. An import with gaps is not complete. */
  readonly gaps?: readonly SourceGap[];
}

export interface SourceGap {
  /** The stack or the file, as `--stack` selects it; null if unknown. */
  readonly name: string | null;
  /** A sentence. */
  readonly text: string;
}

/** A DIY backend, a service, or an archive. */
export interface MovingSource {
  /** For plans and the audit log. */
  readonly location: string;
  /** Throws TransferError. */
  list(): Promise<SourceListing>;
  close(): Promise<void>;
}
