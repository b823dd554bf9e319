import type { DeploymentParts, DocumentParts, PendingOperation } from '../../../deployments/deployment-parts.ts';
import type { ResourceText } from '../../../deployments/resource.ts';

/** Positions are 0-based indexes into the base's resources. */
export interface ReplayState {
  base: DeploymentParts;
  /** Unknown members of the document around the deployment. */
  documentMembers: ReadonlyMap<string, Buffer>;
  /** In order. Null marks a removed resource, so that later indexes do not change. */
  added: (ResourceText | null)[];
  /** Operation id -> index in `added`. */
  addedBy: Map<number, number>;
  removed: Set<number>;
  markedDelete: Set<number>;
  markedPendingReplacement: Set<number>;
  swapped: Map<number, ResourceText>;
  /** Keyed by id; null if started without an `operation`, and therefore not listed as pending. */
  open: Map<number, PendingOperation | null>;
  extensions: Map<string, Buffer>;
  hasRefresh: boolean;
  requiresByteString: boolean;
  lastSequenceId: number;
  /** Sequence ids that were skipped, both ends inclusive. */
  gaps: [from: number, to: number][];
}

export function createReplayState(document: DocumentParts): ReplayState {
  return {
    base: document.deployment,
    documentMembers: document.members,
    ...noChanges(),
    hasRefresh: false,
    requiresByteString: document.features.includes('byteString'),
    lastSequenceId: 0,
    gaps: [],
  };
}

type Changes = Pick<
  ReplayState,
  'added' | 'addedBy' | 'removed' | 'markedDelete' | 'markedPendingReplacement' | 'swapped' | 'open' | 'extensions'
>;

/** A rebuilt base resets this part of the state. */
export function noChanges(): Changes {
  return {
    added: [],
    addedBy: new Map(),
    removed: new Set(),
    markedDelete: new Set(),
    markedPendingReplacement: new Set(),
    swapped: new Map(),
    open: new Map(),
    extensions: new Map(),
  };
}

/** An entry has referred to the base's positions or added resources. */
export function hasChanges(state: ReplayState): boolean {
  return (
    state.added.length +
      state.removed.size +
      state.markedDelete.size +
      state.markedPendingReplacement.size +
      state.swapped.size >
    0
  );
}

export function isApplied(state: ReplayState, sequenceId: number): boolean {
  if (sequenceId >= state.lastSequenceId) return sequenceId === state.lastSequenceId;
  return !state.gaps.some(([from, to]) => sequenceId >= from && sequenceId <= to);
}

/** The sequence id must be higher than all earlier ones. */
export function markApplied(state: ReplayState, sequenceId: number): void {
  if (sequenceId > state.lastSequenceId + 1) state.gaps.push([state.lastSequenceId + 1, sequenceId - 1]);
  state.lastSequenceId = sequenceId;
}
