import {
  type DocumentParts,
  MalformedDeploymentError,
  readDeployment,
  readDocument,
} from '../../../deployments/deployment-parts.ts';
import { flagResource, type ResourceText } from '../../../deployments/resource.ts';
import { type ManifestSource, writeDocument } from '../../../deployments/write-document.ts';
import { type JournalEntryText, newestJournalVersion } from '../../journal-batch.ts';
import { EntryFields, JournalEntryKind } from './entry-fields.ts';
import { migrateState } from './migrate-state.ts';
import { type RebuiltDeployment, rebuildDeployment } from './rebuild-deployment.ts';
import { JournalReplayError } from './replay-error.ts';
import { decodeReplayState, encodeReplayState } from './replay-snapshot.ts';
import { createReplayState, hasChanges, isApplied, markApplied, noChanges, type ReplayState } from './replay-state.ts';
import { AliasConflictError } from './resolve-aliases.ts';

export interface ReplayedDocument {
  readonly document: Buffer;
  readonly features: readonly string[];
  readonly resourceCount: number;
  readonly pendingOperationCount: number;
}

/** The replay has skipped these entries. */
export interface UnknownKinds {
  readonly count: number;
  /** The first of these entries. */
  readonly sequenceId: number;
  readonly kind: number;
}

/**
 * A replay that can stop after any entry: its deployment can be read, and it can continue or be saved and restored. A call that throws
 * leaves the replay unchanged. Resources keep their bytes unless one of their fields has to change; then all other fields keep theirs.
 *
 * A position outside the base, and a new base after changes to the old one, are rejected, because positions would then refer to other
 * resources than the CLI meant. A reference to an operation that added nothing is ignored: it results from a lost or unfinished
 * predecessor, whose begin entry is still listed as pending, and rejecting it would lock the stack.
 */
export class JournalReplay {
  readonly #base: Buffer | null;
  readonly #state: ReplayState;
  #unknownKinds: UnknownKinds | null = null;

  /** The document with which the update began. */
  constructor(base: Buffer | null) {
    this.#base = base;
    this.#state = createReplayState(readBase(base));
  }

  /** `snapshot` must have been taken over the same base. Throws ReplaySnapshotError. */
  static restore(base: Buffer | null, snapshot: Buffer): JournalReplay {
    const replay = new JournalReplay(base);
    Object.assign(replay.#state, decodeReplayState(snapshot, base, replay.#state.base.resources));
    return replay;
  }

  /** Call only if `hasGap` is false; see `apply`. */
  snapshot(): Buffer {
    return encodeReplayState(this.#state, this.#base);
  }

  get lastSequenceId(): number {
    return this.#state.lastSequenceId;
  }

  /** The entry of a missing sequence id may still arrive. */
  get hasGap(): boolean {
    return this.#state.gaps.length > 0;
  }

  /** Counts since this object was created. If there are any, take no snapshot: a release that knows them would never see them. */
  get unknownKinds(): UnknownKinds | null {
    return this.#unknownKinds;
  }

  /**
   * Returns false for a repeated sequence id. Rejects an entry that arrives after a later one (`late-entry`): the replay has to restart
   * from before the gap. Throws JournalReplayError.
   */
  apply(entry: JournalEntryText): boolean {
    const { sequenceId } = entry;
    if (isApplied(this.#state, sequenceId)) return false;
    if (sequenceId < this.#state.lastSequenceId) {
      throw new JournalReplayError('late-entry', `arrived after entry ${this.#state.lastSequenceId}`, sequenceId);
    }
    const fields = new EntryFields(entry);
    const version = fields.integer('version') ?? newestJournalVersion;
    if (version > newestJournalVersion) {
      const message = `has version ${version}, but this release knows versions up to ${newestJournalVersion}`;
      throw new JournalReplayError('unknown-version', message, sequenceId);
    }
    this.#applyKind(fields);
    if (fields.flag('requiresByteString')) this.#state.requiresByteString = true;
    markApplied(this.#state, sequenceId);
    return true;
  }

  generate(manifest: ManifestSource): ReplayedDocument {
    const rebuilt = this.#rebuild(null);
    return {
      document: writeDocument({ ...rebuilt, members: this.#state.documentMembers }, manifest),
      features: rebuilt.features,
      resourceCount: rebuilt.deployment.resources.length,
      pendingOperationCount: rebuilt.deployment.pendingOperations.length,
    };
  }

  #applyKind(fields: EntryFields): void {
    const state = this.#state;
    const kind = fields.requiredInteger('kind');
    switch (kind) {
      case JournalEntryKind.begin:
        state.open.set(fields.requiredInteger('operationID'), fields.operation());
        return;
      case JournalEntryKind.success:
        this.#applySuccess(fields);
        return;
      case JournalEntryKind.failure:
        // The entry's state describes the resource after a success, so it must not be used.
        state.open.delete(fields.requiredInteger('operationID'));
        return;
      case JournalEntryKind.refreshSuccess: {
        const operationId = fields.requiredInteger('operationID');
        this.#applySwap(fields, true);
        state.open.delete(operationId);
        state.hasRefresh = true;
        return;
      }
      case JournalEntryKind.outputs:
        this.#applySwap(fields, false);
        return;
      case JournalEntryKind.write:
        this.#applyWrite(fields);
        return;
      case JournalEntryKind.secretsManager:
        this.#setBaseMember('secrets_providers', fields.object('secretsProvider'), true);
        return;
      case JournalEntryKind.rebuiltBaseState:
        Object.assign(state, { base: this.#rebuild(fields.sequenceId).deployment }, noChanges());
        return;
      case JournalEntryKind.extensionParameterize: {
        const reference = fields.string('extensionRef');
        const extension = fields.object('extension');
        if (reference === null || !extension) throw fields.malformed('Extension without reference or content');
        state.extensions.set(reference, extension);
        return;
      }
      case JournalEntryKind.snippets:
        this.#setBaseMember('snippets', fields.raw('snippets'), false);
        return;
      case JournalEntryKind.stateMigration:
        Object.assign(state, migrateState(state, fields));
        return;
      default: {
        const { count, ...first } = this.#unknownKinds ?? { count: 0, sequenceId: fields.sequenceId, kind };
        this.#unknownKinds = { count: count + 1, ...first };
      }
    }
  }

  #applySuccess(fields: EntryFields): void {
    const state = this.#state;
    // All fields are read before the first change, so that an entry that fails changes nothing.
    const operationId = fields.requiredInteger('operationID');
    const added = fields.state();
    const removeOld = this.#position(fields, 'removeOld');
    const deleteOld = this.#position(fields, 'deleteOld');
    const pendingReplacementOld = this.#position(fields, 'pendingReplacementOld');
    const removeNew = fields.integer('removeNew');
    const deleteNew = fields.integer('deleteNew');
    const pendingReplacementNew = fields.integer('pendingReplacementNew');

    state.open.delete(operationId);
    if (added) state.addedBy.set(operationId, state.added.push(added) - 1);
    if (removeOld !== null) state.removed.add(removeOld);
    if (deleteOld !== null) state.markedDelete.add(deleteOld);
    if (pendingReplacementOld !== null) state.markedPendingReplacement.add(pendingReplacementOld);
    this.#changeAdded(removeNew, () => null);
    this.#changeAdded(deleteNew, (resource) => flagResource(resource, ['delete']));
    this.#changeAdded(pendingReplacementNew, (resource) => flagResource(resource, ['pendingReplacement']));
    if (fields.flag('isRefresh')) state.hasRefresh = true;
  }

  /** Without a `state`, `removesWithoutState` decides whether the resource is removed. */
  #applySwap(fields: EntryFields, removesWithoutState: boolean): void {
    const state = this.#state;
    const resource = fields.state();
    const position = this.#position(fields, 'removeOld');
    const operationId = fields.integer('removeNew');
    if (!resource && !removesWithoutState) return;
    if (position !== null) {
      if (resource) state.swapped.set(position, resource);
      else state.removed.add(position);
    }
    this.#changeAdded(operationId, () => resource);
  }

  #applyWrite(fields: EntryFields): void {
    const snapshot = fields.object('newSnapshot');
    if (!snapshot) throw fields.malformed('"newSnapshot" is missing');
    if (hasChanges(this.#state)) {
      throw new JournalReplayError('write-after-changes', 'replaces the base after changes', fields.sequenceId);
    }
    this.#state.base = fields.readPart(() => readDeployment(snapshot));
  }

  #setBaseMember(name: string, value: Buffer | null, ignoresNull: boolean): void {
    if (value === null && ignoresNull) return;
    const members = new Map(this.#state.base.members);
    if (value) members.set(name, value);
    else members.delete(name);
    this.#state.base = { ...this.#state.base, members };
  }

  #changeAdded(operationId: number | null, change: (resource: ResourceText) => ResourceText | null): void {
    if (operationId === null) return;
    const { added, addedBy } = this.#state;
    const index = addedBy.get(operationId);
    if (index === undefined) return;
    // A removed resource stays removed.
    const resource = added[index];
    if (resource) added[index] = change(resource);
  }

  #position(fields: EntryFields, name: string): number | null {
    const position = fields.integer(name);
    const { length } = this.#state.base.resources;
    if (position !== null && position >= length) {
      const message = `"${name}" is ${position}, but the base has ${length} resources`;
      throw new JournalReplayError('position-out-of-range', message, fields.sequenceId);
    }
    return position;
  }

  #rebuild(sequenceId: number | null): RebuiltDeployment {
    try {
      return rebuildDeployment(this.#state);
    } catch (error) {
      if (!(error instanceof AliasConflictError)) throw error;
      throw new JournalReplayError('alias-conflict', error.message, sequenceId, { cause: error });
    }
  }
}

function readBase(base: Buffer | null): DocumentParts {
  try {
    return readDocument(base);
  } catch (error) {
    if (!(error instanceof MalformedDeploymentError)) throw error;
    const message = `The base is not a deployment: ${error.message}`;
    throw new JournalReplayError('malformed-base', message, null, { cause: error });
  }
}
