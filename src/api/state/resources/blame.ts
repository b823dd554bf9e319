export interface ResourceChange {
  readonly version: number;
  readonly change: string;
  /** Such as `inputs.tags.Name`; incomplete if `pathCount` is larger. */
  readonly paths: readonly string[] | null;
  readonly pathCount: number;
}

export interface BlamedProperty {
  readonly path: string;
  /** Null: unknown. */
  readonly version: number | null;
  /** False: this version or an earlier one set it. */
  readonly isExact: boolean;
}

/** Ends a path that was cut. */
const ellipsis = '…';

/**
 * Finds the version that set each property, from the resource's changes, newest first. The cost of a change is proportional to the length
 * of its paths, regardless of the number of properties.
 */
export class Blame {
  readonly #found = new Map<string, BlamedProperty>();
  readonly #paths: readonly string[];
  /** Each path once, sorted, so that paths with a common prefix are adjacent. */
  readonly #sorted: readonly string[];
  readonly #positions: ReadonlyMap<string, number>;
  /** For each position, a position not after the next open one; the last position is the end. */
  readonly #next: Uint32Array;
  /** Lengths of the cut paths, without the ellipsis. */
  readonly #cutLengths: ReadonlySet<number>;
  #openCount: number;
  /** The newest version whose changes are not completely known: it may have changed any property. */
  #bound: number | null;

  constructor(paths: readonly string[]) {
    this.#paths = paths;
    this.#sorted = [...new Set(paths)].sort();
    this.#positions = new Map(this.#sorted.map((path, at) => [path, at]));
    this.#next = Uint32Array.from({ length: this.#sorted.length + 1 }, (_, at) => at);
    this.#cutLengths = new Set(paths.filter((path) => path.endsWith(ellipsis)).map((path) => path.length - 1));
    this.#openCount = this.#sorted.length;
    this.#bound = null;
  }

  /** Older changes would add nothing. */
  get isDone(): boolean {
    return this.#openCount === 0;
  }

  /** Call first if the changes of this version and earlier ones are unknown. */
  addUnknown(version: number): void {
    this.#bound ??= version;
  }

  /** Not exact: this version, or one between it and the next change, made the change. */
  add(change: ResourceChange, isExact = true): void {
    const bound = this.#bound;
    if (!isExact) this.#bound ??= change.version;
    this.#add(change);
    this.#bound = bound;
    const { paths, pathCount } = change;
    const isWhole = change.change === 'created' || change.change === 'deleted';
    if (!isWhole && (paths === null || paths.length < pathCount)) this.addUnknown(change.version);
  }

  #add({ change, paths, version }: ResourceChange): void {
    if (change === 'created') this.#setAll('', version);
    if (change === 'created' || change === 'deleted') return;
    const changed = paths ?? [];
    for (const path of changed) {
      this.#setOne(path, version);
      // The properties within the cut path.
      if (path.endsWith(ellipsis)) this.#setAll(path.slice(0, -1), version);
      else for (const separator of '.[') this.#setAll(path + separator, version);
      // The properties that contain the path.
      for (let at = 1; at < path.length; at++)
        if (path[at] === '.' || path[at] === '[') this.#setOne(path.slice(0, at), version);
      for (const length of this.#cutLengths) this.#setOne(path.slice(0, length) + ellipsis, version);
    }
  }

  /** `knownFrom`: the changes of versions above this one are known; null: none are. */
  end(knownFrom: number | null): BlamedProperty[] {
    const version = this.#bound ?? knownFrom;
    return this.#paths.map((path) => this.#found.get(path) ?? { path, version, isExact: false });
  }

  #setOne(path: string, version: number): void {
    const at = this.#positions.get(path);
    if (at !== undefined && this.#next[at] === at) this.#set(at, version);
  }

  #setAll(beginning: string, version: number): void {
    let at = this.#openFrom(this.#positionOf(beginning));
    for (; at < this.#sorted.length; at = this.#openFrom(at)) {
      if (!(this.#sorted[at] as string).startsWith(beginning)) return;
      this.#set(at, version);
    }
  }

  #set(at: number, version: number): void {
    const path = this.#sorted[at] as string;
    const isExact = this.#bound === null;
    this.#found.set(path, { path, version: this.#bound ?? version, isExact });
    this.#next[at] = at + 1;
    this.#openCount--;
  }

  #openFrom(from: number): number {
    const next = this.#next;
    let at = from;
    while ((next[at] as number) !== at) {
      // Path compression.
      next[at] = next[next[at] as number] as number;
      at = next[at] as number;
    }
    return at;
  }

  /** The first position whose path is not before the text. */
  #positionOf(text: string): number {
    let [low, high] = [0, this.#sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#sorted[middle] as string) < text) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
