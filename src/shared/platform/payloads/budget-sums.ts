export interface ArrivingBody {
  /** Bytes that have arrived, and the step that is being read. */
  held: number;
  /** Total bytes; null if the client did not declare them. */
  readonly claim: number | null;
  /** The client repeats the call if asked to. Bodies that yield are evicted first. */
  readonly yields: boolean;
  /** The body uses this key's share of the budget, e.g. an organization's. */
  readonly fairnessKey: string;
  /** Maximum bytes of the key in this budget; null for no limit. A single body may be larger. */
  readonly keyLimit: number | null;
  /** In ms of a clock common to all bodies; null if the body does not wait for capacity. */
  blockedSince: number | null;
  /** The sender has sent almost nothing for a while although the server was waiting for it. */
  readonly stalled: boolean;
  /** Chosen to free capacity. The body still counts. */
  evicted: boolean;
}

/** `complete`: bytes of the bodies that wait for a worker, by key. `arriving`: other bodies, oldest first. */
export interface BudgetState<B extends ArrivingBody = ArrivingBody> {
  readonly capacity: number;
  readonly complete: ReadonlyMap<string, number>;
  readonly arriving: readonly B[];
}

/** `in-flight-script.ts` uses them, too. */
export const fairnessRules = {
  /** A key may hold at most this many times the bytes that it leaves free (three quarters if alone). Its first body is exempt. */
  maxRatioToFree: 3,
  /** The fair share of a key is the capacity divided by the number of keys, or by this number if there are more keys. */
  maxKeys: 16,
  /** Bodies evicted at once for another body. */
  maxEvictions: 16,
} as const;

/**
 * The sums of a budget without the `excluded` bodies, computed once: hundreds of bodies may wait, and a decision about one must not read
 * all of them. Valid until a body changes.
 */
export class BudgetSums<B extends ArrivingBody = ArrivingBody> {
  readonly budget: BudgetState<B>;
  /** Bytes held, in total and by fairness key. */
  readonly total: number;
  readonly used: ReadonlyMap<string, number>;
  /** The arriving bodies that hold bytes, oldest first. */
  readonly holding: readonly B[];
  /** Each key may rely on this part of the budget. Counts the keys of all bodies in the budget or waiting. */
  readonly fairShare: number;
  readonly #excluded: ReadonlySet<ArrivingBody>;
  /** Bytes that each key will hold once its bodies are complete. */
  readonly #claimed: ReadonlyMap<string, number>;
  #oldest: B | null | undefined;
  #byNeed: readonly B[] | undefined;
  #stalled: readonly B[] | undefined;
  #newestAboveShare: B | null | undefined;

  constructor(budget: BudgetState<B>, excluded: ReadonlySet<ArrivingBody> = new Set(), more?: BudgetSums<B>) {
    this.budget = budget;
    this.#excluded = excluded;
    this.holding = (more?.holding ?? budget.arriving).filter((each) => each.held > 0 && !excluded.has(each));
    this.fairShare = more?.fairShare ?? fairShare(budget);
    const used = new Map(budget.complete);
    const claimed = new Map(budget.complete);
    for (const each of this.holding) {
      used.set(each.fairnessKey, (used.get(each.fairnessKey) ?? 0) + each.held);
      claimed.set(each.fairnessKey, (claimed.get(each.fairnessKey) ?? 0) + this.#fullSize(each));
    }
    this.used = used;
    this.#claimed = claimed;
    this.total = [...used.values()].reduce((sum, bytes) => sum + bytes, 0);
  }

  /** The oldest body that does not wait for its own key. */
  get oldest(): B | null {
    if (this.#oldest === undefined)
      this.#oldest =
        this.budget.arriving.find((each) => !this.#excluded.has(each) && !this.#waitsForOwnKey(each)) ?? null;
    return this.#oldest;
  }

  /** The bodies that hold bytes, in the order of the bytes that they still need. */
  get byNeed(): readonly B[] {
    this.#byNeed ??= [...this.holding].sort((one, other) => this.restOf(one) - this.restOf(other));
    return this.#byNeed;
  }

  get stalled(): readonly B[] {
    this.#stalled ??= this.holding.filter((each) => each.stalled);
    return this.#stalled;
  }

  /**
   * The newest body of the key that uses the most, if this is more than its fair share. Excludes the oldest body if it declared its size,
   * because that body completes.
   */
  get newestAboveShare(): B | null {
    if (this.#newestAboveShare === undefined) {
      const above = this.holding.filter(
        (each) => this.usedBy(each) > this.fairShare && (each !== this.budget.arriving[0] || each.claim === null),
      );
      const maxUsed = above.reduce((max, each) => Math.max(max, this.usedBy(each)), 0);
      this.#newestAboveShare = newestOf(above.filter((each) => this.usedBy(each) === maxUsed));
    }
    return this.#newestAboveShare;
  }

  without(bodies: readonly B[]): BudgetSums<B> {
    return new BudgetSums(this.budget, new Set([...this.#excluded, ...bodies]), this);
  }

  usedBy({ fairnessKey }: B): number {
    return this.used.get(fairnessKey) ?? 0;
  }

  /** Bytes that the key of `body` will hold once its other bodies are complete. */
  claimedBy(body: B): number {
    const claimed = this.#claimed.get(body.fairnessKey) ?? 0;
    return body.held > 0 ? claimed - this.#fullSize(body) : claimed;
  }

  /** To continue, a body that holds nothing yet needs its full size. */
  needOf({ held, claim }: B, bytes: number): number {
    return held > 0 ? bytes : Math.min(Math.max(claim ?? 0, bytes), this.budget.capacity);
  }

  /** Bodies of unknown size are evicted or refused if they need too much. */
  restOf({ claim, held }: B, bytes = 0): number {
    return Math.max(Math.min(claim ?? 0, this.budget.capacity) - held - bytes, 0);
  }

  /** Whether the key would leave too little for others once this body and its arriving bodies are complete. */
  isOverRatio(body: B, bytes: number): boolean {
    const claimed = this.claimedBy(body);
    if (claimed === 0) return false;
    const claimedThen = claimed + this.needOf(body, bytes);
    const free = this.budget.capacity - this.total + this.usedBy(body) - claimedThen;
    return claimedThen > fairnessRules.maxRatioToFree * free;
  }

  /** Bodies of known size count in full, so they never wait once admitted. */
  isOverLimit(body: B, bytes: number): boolean {
    if (body.keyLimit === null || (body.held > 0 && body.claim !== null)) return false;
    // Among bodies that grow, only the newer ones wait.
    const used = body.held > 0 ? this.#claimedBefore(body) : this.claimedBy(body);
    return used > 0 && used + body.held + this.needOf(body, bytes) > body.keyLimit;
  }

  #claimedBefore(body: B): number {
    let claimed = this.budget.complete.get(body.fairnessKey) ?? 0;
    for (const each of this.holding) {
      if (each === body) break;
      if (each.fairnessKey === body.fairnessKey) claimed += this.#fullSize(each);
    }
    return claimed;
  }

  /** Whether the body waits only for other bodies of its key. */
  #waitsForOwnKey(body: B): boolean {
    return body.held === 0 && (this.isOverRatio(body, 1) || this.isOverLimit(body, 1));
  }

  #fullSize({ claim, held }: B): number {
    return Math.max(held, Math.min(claim ?? 0, this.budget.capacity));
  }
}

function fairShare({ capacity, complete, arriving }: BudgetState): number {
  const keys = new Set([...complete.keys(), ...arriving.map(({ fairnessKey }) => fairnessKey)]);
  return capacity / Math.min(keys.size, fairnessRules.maxKeys);
}

/** Prefers bodies that yield. */
export function newestOf<B extends ArrivingBody>(bodies: readonly B[]): B | null {
  return bodies.findLast(({ yields }) => yields) ?? bodies.at(-1) ?? null;
}
