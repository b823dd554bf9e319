import type { CheckpointRepository } from '../checkpoints/checkpoint-repository.ts';
import type { DocumentGuard } from '../checkpoints/document-guard.ts';
import { DocumentMissingError } from '../documents/document-store.ts';
import type { Database } from '../platform/db/database.ts';
import type { StackRef } from '../stacks/names.ts';
import { compareResources, digestOf, type ResourceFacts, ResourceView, readFacts } from './resource-facts.ts';
import { scanResources } from './scan-resources.ts';
import {
  createStateIndexRepository,
  type IndexedState,
  type IndexRow,
  type IndexStep,
  type ResourceChange,
  type StateIndexRepository,
} from './state-index-repository.ts';

/** Changed resources of a version whose texts are kept to be compared, in bytes; of others only the fact is recorded. */
const maxKeptBytes = 32 * 1024 * 1024;
/** Names of properties that are recorded of one resource. */
const maxPaths = 50;
/** Another process may write the same index; then it is read again. */
const attempts = 5;

/** How many versions were indexed, and how many bytes of documents were read for that. */
export interface IndexProgress {
  readonly versions: number;
  readonly bytes: number;
}

/**
 * Keeps the index of a stack's newest state, and of what each version has changed. Reads documents as streams, and writes only rows that
 * differ, in one transaction for each version. What it has read of the index is checked there, so of two processes one begins anew.
 */
export class StateIndexer {
  readonly #db: Database;
  readonly #checkpoints: CheckpointRepository;
  readonly #guard: DocumentGuard;
  readonly #rows: StateIndexRepository;

  constructor(parts: { db: Database; checkpoints: CheckpointRepository; guard: DocumentGuard }) {
    this.#db = parts.db;
    this.#checkpoints = parts.checkpoints;
    this.#guard = parts.guard;
    this.#rows = createStateIndexRepository(parts.db);
  }

  /** Brings the index to the newest state, version by version. Stops early, between two of them, when the signal fires. */
  async index(stackId: string, signal?: AbortSignal): Promise<IndexProgress> {
    let versions = 0;
    let bytes = 0;
    for (let attempt = 1; attempt <= attempts && !signal?.aborted; ) {
      const index = await this.#rows.open(stackId);
      const next = index && (await this.#findNext(stackId, index));
      if (!next) break;
      try {
        const step = await this.#computeStep(stackId, index, next);
        bytes += step.bytes;
        const isWritten = await this.#db.inTransaction((tx) =>
          createStateIndexRepository(tx).write(stackId, index.edition, step),
        );
        if (isWritten) versions++;
        attempt = isWritten ? 1 : attempt + 1;
      } catch (error) {
        // Replaced by a newer one while it was looked for.
        if (!(error instanceof DocumentMissingError) || attempt === attempts) throw error;
        attempt++;
      }
    }
    return { versions, bytes };
  }

  /**
   * Indexes the stack anew. With `allVersions`, what each version has changed is found out again, too, from the oldest one on; all their
   * documents are read.
   */
  async rebuild(stackId: string, { allVersions }: { readonly allVersions: boolean }): Promise<IndexProgress> {
    const shown = await this.#rows.open(stackId);
    const head = await this.#rows.findHead(stackId);
    // Otherwise versions in between would seem to have changed nothing.
    const keepsKnown = !allVersions && (shown?.version ?? -1) >= (head?.baseVersion ?? 0);
    await this.#rows.reset(stackId, { keepsChanges: !allVersions, keepsKnown });
    if (allVersions) {
      const [oldest] = await this.#rows.listStates(stackId, 0, 1);
      const index = await this.#rows.open(stackId);
      if (!oldest || !index) return this.index(stackId);
      const base = { checkpointId: oldest.baseCheckpointId, baseCheckpointId: oldest.baseCheckpointId };
      const before = { ...base, version: oldest.baseVersion, baseVersion: oldest.baseVersion, isEnded: true };
      const step = await this.#computeStep(stackId, index, before);
      await this.#db.inTransaction((tx) =>
        createStateIndexRepository(tx).write(stackId, index.edition, { ...step, changes: null }),
      );
    }
    return this.index(stackId);
  }

  /** The state to index next: the one that is shown, if it has changed, or the one after it. Null if there is none. */
  async #findNext(stackId: string, index: IndexRow): Promise<IndexedState | null> {
    if (index.version === null) return this.#rows.findHead(stackId);
    for (const state of await this.#rows.listStates(stackId, index.version, 2)) {
      const isShown = state.version === index.version;
      if (isShown && state.isEnded === index.isEnded && state.checkpointId === index.checkpointId) continue;
      return state;
    }
    return null;
  }

  async #computeStep(stackId: string, index: IndexRow, state: IndexedState): Promise<IndexStep & { bytes: number }> {
    const known = await this.#rows.readDigests(stackId);
    const step = new StepBuilder(index, known);
    let bytes = 0;
    const read = async (checkpointId: string | null, onResource: (text: Buffer) => void): Promise<number> => {
      if (checkpointId === null) return 0;
      const checkpoint = await this.#checkpoints.find(checkpointId);
      if (!checkpoint) throw new DocumentMissingError('The state was replaced while it was being indexed');
      const scan = await scanResources(this.#guard.open(checkpoint), onResource);
      bytes += scan.bytes;
      return scan.skipped;
    };
    if (state.isEnded) {
      const isShown = index.isEnded && index.checkpointId === state.baseCheckpointId && index.version !== state.version;
      if (!isShown) await read(state.baseCheckpointId, (text) => step.addBase(text));
      step.beginVersion(isShown);
    }
    const skipped = await read(state.checkpointId, (text) => step.add(text));
    if (step.needsBase()) await read(state.baseCheckpointId, (text) => step.compare(text));
    return { state, skipped, ...step.finish(), bytes };
  }
}

/** Resources by digest, to recognize one without reading its members. */
function byDigest(digests: ReadonlyMap<string, string>): Map<string, string> {
  return new Map([...digests].map(([key, digest]) => [digest, key]));
}

/** Computes one step of an index, from the resources of the state that is indexed and of the one before the version. */
class StepBuilder {
  /** Digests of the state before the version; null while it runs. */
  #base: ReadonlyMap<string, string> | null = null;
  readonly #readBase = new Map<string, string>();
  readonly #stack: StackRef;
  readonly #known: ReadonlyMap<string, string>;
  readonly #knownKeys: ReadonlyMap<string, string>;
  #baseKeys: ReadonlyMap<string, string> = new Map();
  readonly #seen = new Set<string>();
  readonly #written = new Map<string, ResourceFacts>();
  /** Resources that differ from those before the version, by key; the text is null if it is not kept. */
  readonly #differing = new Map<string, { readonly facts: ResourceFacts; readonly text: Buffer | null }>();
  readonly #changes: ResourceChange[] = [];
  #keptBytes = 0;

  constructor(stack: StackRef, known: ReadonlyMap<string, string>) {
    this.#stack = stack;
    this.#known = known;
    this.#knownKeys = byDigest(known);
  }

  /** Takes a resource of the state before the version. */
  addBase(text: Buffer): void {
    const digest = digestOf(text);
    this.#readBase.set(this.#knownKeys.get(digest) ?? new ResourceView(text).key, digest);
  }

  /** Call when the version has ended. With `isKnown`, the state before it is the one that is indexed so far. */
  beginVersion(isKnown: boolean): void {
    this.#base = isKnown ? this.#known : this.#readBase;
    this.#baseKeys = isKnown ? this.#knownKeys : byDigest(this.#readBase);
  }

  /** Takes a resource of the state that is indexed. If two have the same key, the last one counts. */
  add(text: Buffer): void {
    const digest = digestOf(text);
    const known = this.#knownKeys.get(digest);
    if (known !== undefined && (this.#base === null || this.#baseKeys.has(digest))) {
      this.#forget(known);
      return;
    }
    const view = new ResourceView(text);
    const facts = readFacts(view, digest, this.#stack);
    const { key } = facts;
    this.#forget(key);
    if (known === undefined) this.#written.set(key, facts);
    if (this.#base === null || this.#base.get(key) === digest || facts.isDeleted) return;
    const keeps = this.#base.has(key) && this.#keptBytes + text.length <= maxKeptBytes;
    if (keeps) this.#keptBytes += text.length;
    this.#differing.set(key, { facts, text: keeps ? Buffer.from(text) : null });
  }

  #forget(key: string): void {
    this.#seen.add(key);
    this.#written.delete(key);
    this.#differing.delete(key);
  }

  /** Whether the state before the version has to be read to tell how resources have changed. */
  needsBase(): boolean {
    if (this.#base === null) return false;
    for (const key of this.#differing.keys()) if (this.#base.has(key)) return true;
    for (const key of this.#base.keys()) if (!this.#seen.has(key)) return true;
    return false;
  }

  /** Takes a resource of the state before the version, after all others. */
  compare(text: Buffer): void {
    const digest = digestOf(text);
    const key = this.#baseKeys.get(digest);
    if (key === undefined || this.#base?.get(key) !== digest) return;
    const differing = this.#differing.get(key);
    if (differing === undefined && this.#seen.has(key)) return;
    const before = new ResourceView(text);
    if (before.isDeleted) return;
    if (differing === undefined) {
      const { type, urn } = readFacts(before, digest, this.#stack);
      this.#changes.push({ key, urn, type, change: 'deleted', paths: [], pathCount: 0 });
      return;
    }
    const { facts, text: kept } = differing;
    if (kept === null) {
      this.#add(facts, 'updated', null);
      return;
    }
    const { change, paths } = compareResources(before, new ResourceView(kept));
    if (paths.length > 0 || change === 'replaced') this.#add(facts, change, paths);
  }

  finish(): Pick<IndexStep, 'changes' | 'removed' | 'resourceCount' | 'written'> {
    for (const [key, { facts }] of this.#differing) if (!this.#base?.has(key)) this.#add(facts, 'created', []);
    return {
      resourceCount: this.#seen.size,
      written: [...this.#written.values()],
      removed: [...this.#known.keys()].filter((key) => !this.#seen.has(key)),
      changes: this.#base === null ? null : this.#changes,
    };
  }

  #add({ key, type, urn }: ResourceFacts, change: ResourceChange['change'], paths: readonly string[] | null): void {
    const shown = paths === null ? null : paths.slice(0, maxPaths).map(storablePath);
    this.#changes.push({ key, urn, type, change, paths: shown, pathCount: paths?.length ?? 0 });
  }
}

/** Postgres stores no NUL, and the names are joined by line breaks. */
function storablePath(path: string): string {
  return path.replace(/[\0\n]/g, ' ').toWellFormed();
}
