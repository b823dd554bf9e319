import { type ArrivingBody, type BudgetSums, fairnessRules, newestOf } from './budget-sums.ts';

/** `writes` are calls that the CLI repeats, unlike `imports`. The budgets cannot exhaust each other. */
export const budgetNames = ['writes', 'imports'] as const;
export type BudgetName = (typeof budgetNames)[number];

/** How long a body waits, in ms, before it may evict one that yields, or any other. */
export interface WaitLimits {
  readonly withYielding: number;
  readonly withOthers: number;
}

export interface BudgetTimes {
  readonly patience: WaitLimits;
  /** Maximum wait for capacity of a body that yields. */
  readonly yieldingWaitMs: number;
  /** Maximum wait for capacity of any other body. */
  readonly waitMs: number;
  /** A sender that took this long for its last 32 KiB has stalled. */
  readonly stallMs: WaitLimits;
}

export const defaultBudgetTimes: BudgetTimes = {
  patience: { withYielding: 2_000, withOthers: 30_000 },
  yieldingWaitMs: 10_000,
  waitMs: 120_000,
  stallMs: { withYielding: 2_000, withOthers: 10_000 },
};

/** Bodies of a key that wait in one process before a byte is read. Further bodies are refused. */
export const maxWaitingPerKey = 64;

/**
 * Counts received bytes, not declared ones, but keeps enough of the budget free that partly received bodies never wait only for each other.
 * A body larger than the budget continues while it is alone. `in-flight-script.ts` has the same rules for Redis.
 */
export function mayAcquire<B extends ArrivingBody>(sums: BudgetSums<B>, body: B, bytes: number): boolean {
  const { capacity } = sums.budget;
  const others = sums.total - body.held;
  if (others === 0) return true;
  if (others + body.held + bytes > capacity) return false;
  if (sums.isOverLimit(body, bytes)) return false;
  if (body.held === 0) {
    if (sums.isOverRatio(body, bytes)) return false;
    // The oldest body always completes: while it waits, no new body is admitted. Bodies that wait for their own key do not count.
    const { oldest } = sums;
    if (oldest && oldest !== body && oldest.blockedSince !== null) return false;
    if (others + sums.needOf(body, bytes) > capacity) return false;
  }
  return canAllComplete(sums, body, bytes);
}

/** Whether all bodies could complete in some order after `body` acquires `bytes`. */
function canAllComplete<B extends ArrivingBody>(sums: BudgetSums<B>, body: B, bytes: number): boolean {
  // Complete bodies are released without further capacity.
  let free = sums.budget.capacity - bytes;
  for (const { held } of sums.holding) free -= held;
  const held = body.held + bytes;
  const rest = sums.restOf(body, bytes);
  let isCounted = held === 0;
  for (const each of sums.byNeed) {
    if (each === body) continue;
    const need = sums.restOf(each);
    if (!isCounted && rest <= need) {
      if (rest > free) return false;
      free += held;
      isCounted = true;
    }
    if (need > free) return false;
    free += each.held;
  }
  return isCounted || rest <= free;
}

/**
 * Whether a body that holds nothing yet may wait for capacity although its client would repeat the call. It may if it waits only for its
 * own key (which is at its limit or still receives other bodies). It also may if it is below its fair share, and either another key is
 * above its own share, or another body has stalled or been evicted.
 */
export function mayWait<B extends ArrivingBody>(sums: BudgetSums<B>, body: B, bytes: number): boolean {
  if (sums.isOverLimit(body, bytes)) return true;
  // The other bodies of this key may soon complete and be released.
  if (sums.claimedBy(body) > sums.usedBy(body)) return true;
  const part = sums.fairShare;
  if (sums.usedBy(body) + sums.needOf(body, bytes) > part) return false;
  const isOpening = sums.holding.some((each) => each !== body && (each.stalled || each.evicted));
  return (
    isOpening || [...sums.used].some(([fairnessKey, bytesUsed]) => fairnessKey !== body.fairnessKey && bytesUsed > part)
  );
}

/**
 * Returns the bodies to evict for `body`, which is waiting; none if that would not suffice. `sums` exclude the evicted bodies. Chooses
 * stalled bodies first; then, if `body` is below its fair share, the newest body of the key that uses the most; then, if `body` is the
 * oldest, the newest one; then, if `body` does not yield, the newest one that does.
 */
export function chooseEvictions<B extends ArrivingBody>(
  sums: BudgetSums<B>,
  body: B,
  bytes: number,
  now: number,
  patience: WaitLimits,
): B[] {
  if (body.blockedSince === null || mayAcquire(sums, body, bytes)) return [];
  const waitedMs = now - body.blockedSince;
  const chosen: B[] = [];
  for (let left = sums; chosen.length < fairnessRules.maxEvictions; ) {
    const next = nextEviction(left, body, bytes, { waitedMs, patience });
    if (!next) return [];
    chosen.push(next);
    left = left.without([next]);
    if (mayAcquire(left, body, bytes)) return chosen;
  }
  return chosen;
}

function nextEviction<B extends ArrivingBody>(
  sums: BudgetSums<B>,
  body: B,
  bytes: number,
  { waitedMs, patience }: { waitedMs: number; patience: WaitLimits },
): B | null {
  const ifDue = (found: B | null): B | null =>
    found && waitedMs >= (found.yields ? patience.withYielding : patience.withOthers) ? found : null;

  const stalled = sums.stalled.filter((each) => each !== body);
  if (stalled.length > 0) return stalled.reduce((largest, each) => (each.held >= largest.held ? each : largest));

  const isBelowShare = sums.usedBy(body) + sums.needOf(body, bytes) <= sums.fairShare;
  const found = isBelowShare ? ifDue(sums.newestAboveShare) : null;
  if (found) return found;
  const { arriving } = sums.budget;
  if (body === arriving[0]) return ifDue(newestOf(sums.holding.filter((each) => each !== body)));
  // Bodies that do not yield could all complete without the yielding ones, regardless of arrival.
  const hasPriority = !body.yields && (body.held > 0 || body === arriving.find(({ yields }) => !yields));
  return hasPriority ? ifDue(sums.holding.findLast(({ yields }) => yields) ?? null) : null;
}
