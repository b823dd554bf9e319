/** Separate in-flight budgets for calls that the CLI repeats and for imports, which it does not. Neither can exhaust the other's budget. */
export const budgetNames = ['writes', 'imports'] as const;
export type BudgetName = (typeof budgetNames)[number];

/** A body that is being received. */
export interface ArrivingBody {
  /** Bytes reserved: the bytes that arrived, and the step that is being read. */
  held: number;
  /** Total bytes of the body; null if the client did not declare them. */
  readonly claim: number | null;
  /** Whether the client repeats the call if asked to. Such bodies are evicted first. */
  readonly yields: boolean;
  /** The fairness key, e.g. the organization: the body uses its share of the budget. */
  readonly fairnessKey: string;
  /** Maximum bytes of its key in this budget; null is no limit. A single body may be larger. */
  readonly keyLimit: number | null;
  /** When it started to wait for capacity, in ms of a clock common to all bodies; null if it does not wait. */
  blockedSince: number | null;
  /** The sender has sent almost nothing for a while although the server was waiting for it. */
  readonly stalled: boolean;
  /** Chosen to free capacity, but still counted. */
  evicted: boolean;
}

/** State of an in-flight budget. `complete`: bytes of the bodies that wait for a worker, by key. `arriving`: the other bodies, oldest first. */
export interface BudgetState<B extends ArrivingBody = ArrivingBody> {
  readonly capacity: number;
  readonly complete: ReadonlyMap<string, number>;
  readonly arriving: readonly B[];
}

/** How long a body waits before it may evict another one, in ms: one that yields, and any other. */
export interface WaitLimits {
  readonly withYielding: number;
  readonly withOthers: number;
}

/** Times in ms. */
export interface BudgetTimes {
  readonly patience: WaitLimits;
  /** Maximum wait for capacity of a body that yields. */
  readonly yieldingWaitMs: number;
  /** Maximum wait of the others. */
  readonly waitMs: number;
  /** A sender that took this long for its last 32 KiB has stalled: of a body that yields, and of another. */
  readonly stallMs: WaitLimits;
}

export const defaultBudgetTimes: BudgetTimes = {
  patience: { withYielding: 2_000, withOthers: 30_000 },
  yieldingWaitMs: 10_000,
  waitMs: 120_000,
  stallMs: { withYielding: 2_000, withOthers: 10_000 },
};

/** Parameters of the rules, also for `in-flight-script.ts`. */
export const fairnessRules = {
  /** A key may hold at most this many times the bytes that it leaves free (three quarters, if alone). Its first body is exempt. */
  maxRatioToFree: 3,
  /** The fair share of a key is the capacity divided by the number of keys, at most by this number. */
  maxKeys: 16,
  /** Maximum number of bodies evicted at once for another one. */
  maxEvictions: 16,
} as const;

/** Each decision looks at all bodies that wait. So many of a key may wait in a process before a byte is read; more are refused. */
export const maxWaitingPerKey = 64;

type Bodies = ReadonlySet<ArrivingBody>;
const none: Bodies = new Set();

/**
 * Returns whether `body` may acquire `bytes` more. Counts received bytes, not declared ones, but never fills the budget so far that partly received
 * bodies could only wait for each other. A body larger than the budget continues while it is alone.
 * `in-flight-script.ts` has the same rules for Redis. `excluded`: bodies that no longer count.
 */
export function mayAcquire(budget: BudgetState, body: ArrivingBody, bytes: number, excluded: Bodies = none): boolean {
  const others = totalOf(budget, excluded) - body.held;
  if (others === 0) return true;
  if (others + body.held + bytes > budget.capacity) return false;
  if (isOverLimit(budget, body, bytes, excluded)) return false;
  if (body.held === 0) {
    if (isOverRatio(budget, body, bytes, excluded)) return false;
    // The oldest body always completes: while it waits, no new body is admitted. Bodies that wait for their own key do not count.
    const oldest = budget.arriving.find((each) => !excluded.has(each) && !waitsForOwnKey(budget, each, excluded));
    if (oldest && oldest !== body && oldest.blockedSince !== null) return false;
    if (others + needOf(budget, body, bytes) > budget.capacity) return false;
  }
  return canAllComplete(budget, body, bytes, excluded);
}

/** Whether all bodies could complete in some order after `body` acquires `bytes`. */
function canAllComplete(
  { capacity, arriving }: BudgetState,
  body: ArrivingBody,
  bytes: number,
  excluded: Bodies,
): boolean {
  const after = arriving
    .filter((each) => !excluded.has(each))
    .map((each) => ({ held: each === body ? each.held + bytes : each.held, claim: each.claim }))
    .filter(({ held }) => held > 0)
    // Bodies of unknown size are evicted or refused if they need too much.
    .map(({ held, claim }) => ({ held, need: Math.max(Math.min(claim ?? 0, capacity) - held, 0) }))
    .sort((one, other) => one.need - other.need);
  // Complete bodies are released without further capacity.
  let free = capacity - after.reduce((sum, { held }) => sum + held, 0);
  for (const { held, need } of after) {
    if (need > free) return false;
    free += held;
  }
  return true;
}

/**
 * Whether a body that holds nothing yet may wait for capacity although its client would repeat the call. It may if it only waits for
 * its own key (which is at its limit or still receives other bodies), or if it is below its fair share while another key is
 * above its own, or another body has stalled or been evicted.
 */
export function mayWait(budget: BudgetState, body: ArrivingBody, bytes: number): boolean {
  if (isOverLimit(budget, body, bytes, none)) return true;
  const used = usedByKey(budget, none);
  // The other bodies of its key may soon complete and be released.
  if (claimedBy(budget, body, none) > (used.get(body.fairnessKey) ?? 0)) return true;
  const part = fairShare(budget, body);
  if ((used.get(body.fairnessKey) ?? 0) + needOf(budget, body, bytes) > part) return false;
  const isOpening = budget.arriving.some((each) => each !== body && each.held > 0 && (each.stalled || each.evicted));
  return (
    isOpening || [...used].some(([fairnessKey, bytesUsed]) => fairnessKey !== body.fairnessKey && bytesUsed > part)
  );
}

/**
 * Returns the bodies to evict for `body`, which waits; none if that would not be enough. Chooses stalled bodies first; then, if
 * `body` is below its fair share, the newest of the key that uses the most; then, if `body` is the oldest, the newest; and if
 * `body` does not yield, the newest that does.
 */
export function chooseEvictions<B extends ArrivingBody>(
  budget: BudgetState<B>,
  body: B,
  bytes: number,
  now: number,
  patience: WaitLimits,
): B[] {
  if (body.blockedSince === null) return [];
  const excluded = new Set<ArrivingBody>(budget.arriving.filter((each) => each.evicted && each !== body));
  const isEnough = (): boolean => mayAcquire(budget, body, bytes, excluded);
  if (isEnough()) return [];
  const waitedMs = now - body.blockedSince;
  const chosen: B[] = [];
  while (chosen.length < fairnessRules.maxEvictions) {
    const next = nextEviction(budget, body, bytes, { excluded, waitedMs, patience });
    if (!next) return [];
    excluded.add(next);
    chosen.push(next);
    if (isEnough()) return chosen;
  }
  return chosen;
}

function nextEviction<B extends ArrivingBody>(
  budget: BudgetState<B>,
  body: B,
  bytes: number,
  { excluded, waitedMs, patience }: { excluded: Bodies; waitedMs: number; patience: WaitLimits },
): B | undefined {
  const holding = budget.arriving.filter((each) => each !== body && each.held > 0 && !excluded.has(each));
  const isDue = ({ yields }: B): boolean => waitedMs >= (yields ? patience.withYielding : patience.withOthers);
  const newest = (bodies: readonly B[]): B | undefined => {
    const found = bodies.findLast(({ yields }) => yields) ?? bodies.at(-1);
    return found && isDue(found) ? found : undefined;
  };

  const stalled = holding.filter((each) => each.stalled);
  if (stalled.length > 0) return stalled.reduce((largest, each) => (each.held >= largest.held ? each : largest));

  const used = usedByKey(budget, excluded);
  const part = fairShare(budget, body);
  if ((used.get(body.fairnessKey) ?? 0) + needOf(budget, body, bytes) <= part) {
    const above = holding
      .filter(({ fairnessKey }) => fairnessKey !== body.fairnessKey && (used.get(fairnessKey) ?? 0) > part)
      // The oldest body completes if it declared its size.
      .filter((each) => each !== budget.arriving[0] || each.claim === null);
    const maxUsed = Math.max(...above.map(({ fairnessKey }) => used.get(fairnessKey) ?? 0));
    const found = newest(above.filter(({ fairnessKey }) => used.get(fairnessKey) === maxUsed));
    if (found) return found;
  }
  if (body === budget.arriving[0]) return newest(holding);
  // Bodies that do not yield could all complete without the bodies that do, regardless of arrival.
  const hasPriority = body.held > 0 || body === budget.arriving.find(({ yields }) => !yields);
  return !body.yields && hasPriority ? newest(holding.filter(({ yields }) => yields)) : undefined;
}

/** Whether the body waits only for other bodies of its key. */
function waitsForOwnKey(budget: BudgetState, body: ArrivingBody, excluded: Bodies): boolean {
  return body.held === 0 && (isOverRatio(budget, body, 1, excluded) || isOverLimit(budget, body, 1, excluded));
}

/** Whether the key would leave too little for others once this body and its arriving bodies are complete. */
function isOverRatio(budget: BudgetState, body: ArrivingBody, bytes: number, excluded: Bodies): boolean {
  const claimed = claimedBy(budget, body, excluded);
  if (claimed === 0) return false;
  const used = usedByKey(budget, excluded).get(body.fairnessKey) ?? 0;
  const need = needOf(budget, body, bytes);
  return (
    claimed + need >
    fairnessRules.maxRatioToFree * (budget.capacity - totalOf(budget, excluded) + used - claimed - need)
  );
}

/** Bytes that the key of `body` will hold once its other bodies are complete. */
function claimedBy({ capacity, complete, arriving }: BudgetState, body: ArrivingBody, excluded: Bodies): number {
  let claimed = complete.get(body.fairnessKey) ?? 0;
  for (const each of arriving) {
    if (each === body || each.held === 0 || each.fairnessKey !== body.fairnessKey || excluded.has(each)) continue;
    claimed += Math.max(each.held, Math.min(each.claim ?? 0, capacity));
  }
  return claimed;
}

/** Whether the key would exceed its own limit. Bodies of known size count in full, so they never wait once admitted. */
export function isOverLimit(budget: BudgetState, body: ArrivingBody, bytes: number, excluded: Bodies = none): boolean {
  if (body.keyLimit === null || (body.held > 0 && body.claim !== null)) return false;
  let used = budget.complete.get(body.fairnessKey) ?? 0;
  for (const each of budget.arriving) {
    // Of bodies that grow, only the newer ones wait.
    if (each === body && body.held > 0) break;
    if (each === body || each.held === 0 || each.fairnessKey !== body.fairnessKey || excluded.has(each)) continue;
    used += Math.max(each.held, Math.min(each.claim ?? 0, budget.capacity));
  }
  return used > 0 && used + body.held + needOf(budget, body, bytes) > body.keyLimit;
}

/** Bytes that a body needs to continue: its full size if it holds nothing yet. */
function needOf({ capacity }: BudgetState, { held, claim }: ArrivingBody, bytes: number): number {
  return held > 0 ? bytes : Math.min(Math.max(claim ?? 0, bytes), capacity);
}

/** The part of the budget that each key may rely on. Counts the keys of `body` and of all bodies in the budget or waiting. */
function fairShare({ capacity, complete, arriving }: BudgetState, body: ArrivingBody): number {
  const keys = new Set([body.fairnessKey, ...complete.keys(), ...arriving.map(({ fairnessKey }) => fairnessKey)]);
  return capacity / Math.min(keys.size, fairnessRules.maxKeys);
}

/** Bytes that bodies hold by fairness key, without `excluded` ones. */
export function usedByKey({ complete, arriving }: BudgetState, excluded: Bodies): Map<string, number> {
  const used = new Map(complete);
  for (const each of arriving) {
    if (each.held > 0 && !excluded.has(each)) used.set(each.fairnessKey, (used.get(each.fairnessKey) ?? 0) + each.held);
  }
  return used;
}

function totalOf(budget: BudgetState, excluded: Bodies): number {
  let total = 0;
  for (const bytes of budget.complete.values()) total += bytes;
  for (const each of budget.arriving) if (!excluded.has(each)) total += each.held;
  return total;
}
