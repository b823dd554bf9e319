import type { HistoryInfo } from '../../shared/diy/history-info.ts';
import type { Decrypt } from './stack-secrets.ts';

/** A state of the source, as a deployment document. */
export interface SourceState {
  /** For messages. */
  readonly name: string;
  /** As stored in the source; null if the source does not say. */
  readonly bytes: number | null;
  /** Reads it from the beginning; nothing if the stack has no state. Throws TransferError. */
  document(): AsyncIterable<Buffer>;
}

/** An update in the history of a stack, and the state that it left. */
export interface SourceEntry {
  /** Its identity in the source. */
  readonly id: string;
  /** Its version in the source; null if the source does not number them. */
  readonly stackVersion: number | null;
  /** The id of its update in the source, which it keeps here if it is free; null if the source has none. */
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
  /** The first update that began later; null if none did. */
  readonly before: string | null;
}

export interface FormerName {
  readonly project: string;
  readonly stack: string;
}

/** What the source has of a stack. */
export interface SourceContent {
  /** The newest state. */
  readonly state: SourceState & { readonly modifiedAt: Date };
  /** Whether the newest state can be one that no update of the history has left. */
  readonly mayHaveUnrecordedState: boolean;
  /** Whether the newest state is known to be one that no update has left; without it, it is not known. */
  readonly isInitial?: boolean;
  /** Oldest first. */
  readonly history: readonly SourceEntry[];
  /** The ids of the history and of updates whose states the source no longer has, oldest first; without it, only of the history. */
  readonly order?: readonly string[];
  /** Ended previews, oldest first; none if the source keeps none. */
  readonly previews?: readonly SourcePreview[];
  /** What of the stack cannot be imported. */
  readonly notes: readonly string[];
  /** What the source may have besides, but does not list. */
  readonly gaps?: readonly string[];
  /** Why the stack cannot be imported now; null if it can. */
  readonly fault: string | null;
  /** Whether an update runs there, whose state is not in the history. */
  readonly isBusy: boolean;
  /** The tags, not checked. Throws TransferError. */
  tags(): Promise<object>;
  /** Names that the stack had before renames, if the source tells them. */
  readonly formerNames?: readonly FormerName[];
  /** What is wrong with these entries or previews, so that nothing of the stack may be imported; null if nothing is. */
  readonly check: ((entries: readonly (SourceEntry | SourcePreview)[]) => Promise<string | null>) | null;
  /** Decrypts secrets of the source's own keys; null if it has no keys. */
  readonly decrypt: Decrypt | null;
}

/** A stack in the source. */
export interface SourceStack {
  /** `project/stack`, or only the stack in a folder without projects. */
  readonly name: string;
  /** Null in a folder without projects. */
  readonly project: string | null;
  readonly stack: string;
  /** Reads its history. Throws TransferError. */
  open(): Promise<SourceContent>;
}

/** What a source contains. */
export interface SourceListing {
  /** By name. */
  readonly stacks: readonly SourceStack[];
  /** Files that are in neither layout of the source. */
  readonly strays: readonly string[];
  /** Sentences about the source as a whole. */
  readonly remarks: readonly string[];
  /** Sentences about what the source has besides stacks, which is not imported. */
  readonly leftOut: readonly string[];
  /** Stacks that the source lacks or may lack. An import with any of them is not complete. */
  readonly gaps?: readonly SourceGap[];
}

/** What a source does not have. */
export interface SourceGap {
  /** The stack or the file, as `--stack` selects it; null if unknown. */
  readonly name: string | null;
  /** A sentence. */
  readonly text: string;
}

/** Where stacks come from: a DIY backend, a service, or an archive. */
export interface MovingSource {
  /** For plans and the audit log. */
  readonly location: string;
  /** Throws TransferError. */
  list(): Promise<SourceListing>;
  close(): Promise<void>;
}
