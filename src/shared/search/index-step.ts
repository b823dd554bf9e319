import type { StackRef } from '../stacks/names.ts';
import type { ChangeKind, ResourceChange, VersionChanges } from './indexed-resource-repository.ts';
import { PackedRows } from './packed-rows.ts';
import { compareResources, digestOf, type ResourceFacts, readFacts, viewResource } from './resource-facts.ts';
import type { IndexStep } from './state-index-repository.ts';

/** Texts of changed resources are kept for a comparison up to this size. For further resources, only the fact of the change is recorded. */
const maxKeptBytes = 32 * 1024 * 1024;
/** Names of properties recorded for one resource. */
const maxPaths = 50;
/**
 * Each indexed resource takes up to 800 bytes of memory here, and about 1 KB in Postgres. A state of 1 GiB may have 50 million resources.
 * References to stacks have additional room, because rules rely on them.
 */
const maxResources = 250_000;
const moreReferences = 10_000;
/** Releases without this bound may have written larger indexes, which are too large to be read. */
export const maxIndexed = maxResources + moreReferences;

/** By digest, a resource is recognized without reading its members. */
function byDigest(digests: ReadonlyMap<string, string>): Map<string, string> {
  return new Map([...digests].map(([key, digest]) => [digest, key]));
}

/** Computes a step from the resources of the indexed state and of the state before the version. */
export class IndexStepBuilder {
  /** Null while the version runs. */
  #base: ReadonlyMap<string, string> | null = null;
  readonly #readBase = new Map<string, string>();
  readonly #stack: StackRef;
  readonly #known: ReadonlyMap<string, string>;
  readonly #knownKeys: ReadonlyMap<string, string>;
  #baseKeys: ReadonlyMap<string, string> = new Map();
  readonly #seen = new Set<string>();
  readonly #written = new PackedRows<ResourceFacts>();
  /** Resources that differ from those of the same key before the version. The text is null if it is not kept. */
  readonly #differing = new Map<
    string,
    { readonly urn: string; readonly type: string; readonly text: Buffer | null }
  >();
  readonly #created = new PackedRows<ResourceChange>();
  /** Changes of resources that existed before the version. */
  readonly #changed = new PackedRows<ResourceChange>();
  readonly #counts = { updated: 0, replaced: 0, deleted: 0 };
  readonly #limit: number;
  #keptBytes = 0;
  #skipped = 0;

  constructor(stack: StackRef, known: ReadonlyMap<string, string>, limit = maxResources) {
    this.#limit = limit;
    this.#stack = stack;
    this.#known = known;
    this.#knownKeys = byDigest(known);
  }

  async addBase(text: Buffer): Promise<void> {
    const digest = digestOf(text);
    const key = this.#knownKeys.get(digest) ?? (await viewResource(text)).key;
    if (this.#readBase.size < this.#limit || this.#readBase.has(key)) this.#readBase.set(key, digest);
  }

  /** Call this when the version has ended. `isKnown`: the state before it is the one indexed so far. */
  beginVersion(isKnown: boolean): void {
    this.#base = isKnown ? this.#known : this.#readBase;
    this.#baseKeys = isKnown ? this.#knownKeys : byDigest(this.#readBase);
  }

  /** If two resources have the same key, the last one counts. */
  async add(text: Buffer): Promise<void> {
    const digest = digestOf(text);
    const known = this.#knownKeys.get(digest);
    if (known !== undefined && this.#hasRoom(known) && (this.#base === null || this.#baseKeys.has(digest))) {
      this.#forget(known);
      return;
    }
    const facts = await readFacts(await viewResource(text), digest, this.#stack);
    const { key, reads, type, urn } = facts;
    if (!this.#hasRoom(key, reads !== null)) {
      this.#skipped++;
      return;
    }
    this.#forget(key);
    if (known === undefined) this.#written.set(facts);
    if (this.#base === null || this.#base.get(key) === digest || facts.isDeleted) return;
    if (!this.#base.has(key)) {
      // The resource may have been skipped in the base.
      const isNew = this.#base.size < this.#limit;
      if (isNew) this.#created.set({ key, urn, type, change: 'created', paths: [], pathCount: 0 });
      return;
    }
    const keeps = this.#keptBytes + text.length <= maxKeptBytes;
    if (keeps) this.#keptBytes += text.length;
    this.#differing.set(key, { urn, type, text: keeps ? Buffer.from(text) : null });
  }

  #hasRoom(key: string, isReference = false): boolean {
    const { size } = this.#seen;
    return size < this.#limit || this.#seen.has(key) || (isReference && size < this.#limit + moreReferences);
  }

  /** If true, resources that were not seen are gone; otherwise they may have been skipped. */
  #seesAll(): boolean {
    return this.#seen.size < this.#limit;
  }

  #forget(key: string): void {
    this.#seen.add(key);
    this.#written.delete(key);
    this.#created.delete(key);
    this.#differing.delete(key);
  }

  /** The state before the version may be needed to determine how resources have changed. */
  needsBase(): boolean {
    if (this.#base === null) return false;
    if (this.#differing.size > 0) return true;
    if (!this.#seesAll()) return false;
    for (const key of this.#base.keys()) if (!this.#seen.has(key)) return true;
    return false;
  }

  /** Call this after all calls of `add`. */
  async compare(text: Buffer): Promise<void> {
    const digest = digestOf(text);
    const key = this.#baseKeys.get(digest);
    if (key === undefined || this.#base?.get(key) !== digest) return;
    const differing = this.#differing.get(key);
    if (differing === undefined && (this.#seen.has(key) || !this.#seesAll())) return;
    const before = await viewResource(text);
    if (before.isDeleted) return;
    if (differing === undefined) {
      const { type, urn } = await readFacts(before, digest, this.#stack);
      this.#add({ key, urn, type }, 'deleted', []);
      return;
    }
    const { text: kept, type, urn } = differing;
    if (kept === null) {
      this.#add({ key, urn, type }, 'updated', null);
      return;
    }
    const { change, paths } = await compareResources(before, await viewResource(kept));
    if (paths.length > 0 || change === 'replaced') this.#add({ key, urn, type }, change, paths);
  }

  /** `skipped` counts resources beyond the bound. */
  finish(): Pick<IndexStep, 'changes' | 'removed' | 'resourceCount' | 'skipped' | 'written'> {
    const [changed, created] = [this.#changed, this.#created];
    const changes: VersionChanges = {
      counts: { ...this.#counts, created: created.size },
      *batches() {
        yield* changed.batches();
        yield* created.batches();
      },
    };
    return {
      resourceCount: this.#seen.size,
      skipped: this.#skipped,
      written: this.#written,
      removed: [...this.#known.keys()].filter((key) => !this.#seen.has(key)),
      changes: this.#base === null ? null : changes,
    };
  }

  #add(
    { key, type, urn }: Pick<ResourceChange, 'key' | 'type' | 'urn'>,
    change: Exclude<ChangeKind, 'created'>,
    paths: readonly string[] | null,
  ): void {
    // A state may have a resource twice.
    if (this.#changed.has(key)) return;
    this.#counts[change]++;
    const shown = paths === null ? null : paths.slice(0, maxPaths).map(storablePath);
    this.#changed.set({ key, urn, type, change, paths: shown, pathCount: paths?.length ?? 0 });
  }
}

/** Postgres stores no NUL, and line breaks separate the names. */
function storablePath(path: string): string {
  return path.replace(/[\0\n]/g, ' ').toWellFormed();
}
