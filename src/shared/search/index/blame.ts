/** How a version has changed a resource. */
export interface ResourceChange {
  readonly version: number;
  readonly change: string;
  /** Names of properties, such as `inputs.tags.Name`; not all of them if `pathCount` is larger. */
  readonly paths: readonly string[] | null;
  readonly pathCount: number;
}

/** Which version has set a property. */
export interface BlamedProperty {
  readonly path: string;
  /** Null: not known. */
  readonly version: number | null;
  /** If not, this version or one before it. */
  readonly isExact: boolean;
}

/** Finds out which version has set each property of a resource, from its changes, which are given newest first. */
export class Blame {
  readonly #found = new Map<string, BlamedProperty>();
  readonly #paths: readonly string[];
  #open: Set<string>;
  /** The newest version that may have changed any property, because not all that it changed is known. */
  #bound: number | null;

  /** `unknown`: the newest version, if it is not among the changes. */
  constructor(paths: readonly string[], unknown: number | null = null) {
    this.#paths = paths;
    this.#open = new Set(paths);
    this.#bound = unknown;
  }

  /** Whether older changes would say nothing more. */
  get isDone(): boolean {
    return this.#open.size === 0;
  }

  add({ change, pathCount, paths, version }: ResourceChange): void {
    if (change === 'created') {
      for (const path of this.#open) this.#set(path, version);
      this.#open = new Set();
      return;
    }
    if (change === 'deleted') return;
    const changed = [...(paths ?? [])];
    for (const path of this.#open) {
      if (!changed.some((each) => covers(each, path) || covers(path, each))) continue;
      this.#set(path, version);
      this.#open.delete(path);
    }
    if (paths === null || changed.length < pathCount) this.#bound ??= version;
  }

  /** `knownFrom`: changes are known of versions above this one; null: of none. */
  end(knownFrom: number | null): BlamedProperty[] {
    for (const path of this.#open) {
      const version = this.#bound ?? knownFrom;
      this.#found.set(path, { path, version, isExact: false });
    }
    return this.#paths.map((path) => this.#found.get(path) as BlamedProperty);
  }

  #set(path: string, version: number): void {
    const isExact = this.#bound === null;
    this.#found.set(path, { path, version: this.#bound ?? version, isExact });
  }
}

/** Whether the value at `outer` contains the one at `inner`. Long paths are cut where they end with an ellipsis. */
function covers(outer: string, inner: string): boolean {
  if (outer.endsWith('…')) return inner.startsWith(outer.slice(0, -1));
  return inner === outer || (inner.startsWith(outer) && /^[.[]/.test(inner.slice(outer.length)));
}
