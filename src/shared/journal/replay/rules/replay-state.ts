import type { DeploymentParts, DocumentParts, PendingOperation } from '../../../deployments/deployment-parts.ts';
import type { ResourceText } from '../../../deployments/resource.ts';

/** What a replay remembers between entries. Positions count the base's resources from 0. */
export interface ReplayState {
  base: DeploymentParts;
  /** Unknown members of the document around the deployment. */
  documentMembers: ReadonlyMap<string, Buffer>;
  /** Resources that the journal added, in order; null = removed again (a tombstone, later places do not move). */
  added: (ResourceText | null)[];
  /** Operation id -> place in `added`. */
  addedBy: Map<number, number>;
  removed: Set<number>;
  markedDelete: Set<number>;
  markedPendingReplacement: Set<number>;
  swapped: Map<number, ResourceText>;
  /** Begun operations by id; null = begun without an `operation`, so never shown. */
  open: Map<number, PendingOperation | null>;
  extensions: Map<string, Buffer>;
  hasRefresh: boolean;
  requiresByteString: boolean;
  lastSequenceId: number;
  /** Ranges of sequence ids, both ends included, that were passed over. */
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

/** The part of the state that a rebuilt base starts anew. */
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

/** Whether an entry has referred to the base's positions or added resources. */
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

/** Records an entry later than all before. */
export function markApplied(state: ReplayState, sequenceId: number): void {
  if (sequenceId > state.lastSequenceId + 1) state.gaps.push([state.lastSequenceId + 1, sequenceId - 1]);
  state.lastSequenceId = sequenceId;
}
