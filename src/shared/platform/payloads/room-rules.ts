/** What bodies are counted against: calls that the CLI repeats, and imports, which it does not. Neither can fill the other's. */
export const roomNames = ['writes', 'imports'] as const;
export type RoomName = (typeof roomNames)[number];

/** A body on its way in. */
export interface ArrivingBody {
  /** Bytes that it has room for: those that arrived, and the step that is being read. */
  held: number;
  /** Bytes that it will have in the end; null when the client did not say. */
  readonly claim: number | null;
  /** Whether its client repeats the call when it is told to: such bodies give way first. */
  readonly yields: boolean;
  /** Whose part of the room it counts to, e.g. the organization. */
  readonly share: string;
  /** Most bytes that its share may have in this room; null is as much as there is. A single body may be larger. */
  readonly shareLimit: number | null;
  /** Since when it waits for room, in ms of a clock that all bodies share. */
  blockedSince: number | null;
  /** Its sender has sent next to nothing for a while, although it was waited for. */
  readonly stalled: boolean;
  /** It was chosen to make room, and is on its way out. */
  leaves: boolean;
}

/** One room as it is: `whole` has the bytes of bodies that wait for a worker, by share; `arriving` the others, the oldest first. */
export interface RoomState<B extends ArrivingBody = ArrivingBody> {
  readonly capacity: number;
  readonly whole: ReadonlyMap<string, number>;
  readonly arriving: readonly B[];
}

/** How long a body waits before another one has to give way to it, in ms: one whose client repeats the call, and any other. */
export interface Patience {
  readonly withYielding: number;
  readonly withOthers: number;
}

/** Times in ms. */
export interface RoomTimes {
  readonly patience: Patience;
  /** Longest wait for room of a body that yields. */
  readonly yieldingWaitMs: number;
  /** Longest wait of the others. */
  readonly waitMs: number;
  /** A sender that was waited for that long for its last 32 KiB has stalled: of a body that yields, and of another. */
  readonly stallMs: Patience;
}

export const defaultRoomTimes: RoomTimes = {
  patience: { withYielding: 2_000, withOthers: 30_000 },
  yieldingWaitMs: 10_000,
  waitMs: 120_000,
  stallMs: { withYielding: 2_000, withOthers: 10_000 },
};

/** Figures of the rules, for `room-script.ts` too. */
export const shareRules = {
  /** A share with something in the room takes no more than this many times what it leaves free: three quarters, when alone. */
  timesFree: 3,
  /** The fair part of a share is the room by the number of shares, and never less than the room by this. */
  mostShares: 16,
  /** Bodies that are sent away at once for another one, at most. */
  mostLeaving: 16,
} as const;

type Bodies = ReadonlySet<ArrivingBody>;
const nobody: Bodies = new Set();

/**
 * Whether `body` may have `bytes` more. What has arrived counts, not what was declared: but no step may leave the room so full
 * that bodies which are half in could only wait for each other. A body larger than the room goes on while it is alone.
 * `room-script.ts` has the same rules for Redis. `gone`: bodies that do not count any more.
 */
export function mayTake(room: RoomState, body: ArrivingBody, bytes: number, gone: Bodies = nobody): boolean {
  const others = totalOf(room, gone) - body.held;
  if (others === 0) return true;
  if (others + body.held + bytes > room.capacity) return false;
  if (isOverLimit(room, body, bytes, gone)) return false;
  if (body.held === 0) {
    if (isOverPart(room, body, bytes, gone)) return false;
    // The oldest always comes to its end: while it waits, nobody new gets in. Unless it waits for bodies of its own share.
    const oldest = room.arriving.find((each) => !gone.has(each) && !standsBack(room, each, gone));
    if (oldest && oldest !== body && oldest.blockedSince !== null) return false;
    if (others + needOf(room, body, bytes) > room.capacity) return false;
  }
  return canAllEnd(room, body, bytes, gone);
}

/** Whether there is an order in which all bodies could come in whole once `body` has `bytes` more. */
function canAllEnd({ capacity, arriving }: RoomState, body: ArrivingBody, bytes: number, gone: Bodies): boolean {
  const after = arriving
    .filter((each) => !gone.has(each))
    .map((each) => ({ held: each === body ? each.held + bytes : each.held, claim: each.claim }))
    .filter(({ held }) => held > 0)
    // Those that do not say how much they will need are told to come back when that is too much.
    .map(({ held, claim }) => ({ held, need: Math.max(Math.min(claim ?? 0, capacity) - held, 0) }))
    .sort((one, other) => one.need - other.need);
  // Whole bodies go by themselves.
  let free = capacity - after.reduce((sum, { held }) => sum + held, 0);
  for (const { held, need } of after) {
    if (need > free) return false;
    free += held;
  }
  return true;
}

/**
 * Whether a body that is not in yet may wait for room although its client would repeat the call: when it waits for its own share
 * alone, whose other bodies are still coming in or have a limit, or has not got its fair part, while others have more than theirs or
 * have stalled.
 */
export function mayWait(room: RoomState, body: ArrivingBody, bytes: number): boolean {
  if (isOverLimit(room, body, bytes, nobody)) return true;
  const used = usedByShare(room, nobody);
  // What its share has yet to send may come to its end, and be gone, before long.
  if (claimedBy(room, body, nobody) > (used.get(body.share) ?? 0)) return true;
  const part = fairPart(room, body);
  if ((used.get(body.share) ?? 0) + needOf(room, body, bytes) > part) return false;
  const isOpening = room.arriving.some((each) => each !== body && each.held > 0 && (each.stalled || each.leaves));
  return isOpening || [...used].some(([share, bytesUsed]) => share !== body.share && bytesUsed > part);
}

/**
 * The bodies that have to make room for `body`, which waits; none when that would not be enough. First those that have stalled;
 * then, when `body` has not got its fair part, the youngest of the share that has most; at last, when it is the oldest, the youngest,
 * and when it does not yield, the youngest that does.
 */
export function whoGivesWay<B extends ArrivingBody>(
  room: RoomState<B>,
  body: B,
  bytes: number,
  now: number,
  patience: Patience,
): B[] {
  if (body.blockedSince === null) return [];
  const gone = new Set<ArrivingBody>(room.arriving.filter((each) => each.leaves && each !== body));
  const isEnough = (): boolean => mayTake(room, body, bytes, gone);
  if (isEnough()) return [];
  const waitedMs = now - body.blockedSince;
  const chosen: B[] = [];
  while (chosen.length < shareRules.mostLeaving) {
    const next = nextToLeave(room, body, bytes, { gone, waitedMs, patience });
    if (!next) return [];
    gone.add(next);
    chosen.push(next);
    if (isEnough()) return chosen;
  }
  return chosen;
}

function nextToLeave<B extends ArrivingBody>(
  room: RoomState<B>,
  body: B,
  bytes: number,
  { gone, waitedMs, patience }: { gone: Bodies; waitedMs: number; patience: Patience },
): B | undefined {
  const holding = room.arriving.filter((each) => each !== body && each.held > 0 && !gone.has(each));
  const isDue = ({ yields }: B): boolean => waitedMs >= (yields ? patience.withYielding : patience.withOthers);
  const youngest = (bodies: readonly B[]): B | undefined => {
    const found = bodies.findLast(({ yields }) => yields) ?? bodies.at(-1);
    return found && isDue(found) ? found : undefined;
  };

  const stalled = holding.filter((each) => each.stalled);
  if (stalled.length > 0) return stalled.reduce((most, each) => (each.held >= most.held ? each : most));

  const used = usedByShare(room, gone);
  const part = fairPart(room, body);
  if ((used.get(body.share) ?? 0) + needOf(room, body, bytes) <= part) {
    const above = holding
      .filter(({ share }) => share !== body.share && (used.get(share) ?? 0) > part)
      // Who has said how much it will be comes to its end once it is the oldest.
      .filter((each) => each !== room.arriving[0] || each.claim === null);
    const most = Math.max(...above.map(({ share }) => used.get(share) ?? 0));
    const found = youngest(above.filter(({ share }) => used.get(share) === most));
    if (found) return found;
  }
  if (body === room.arriving[0]) return youngest(holding);
  // Bodies that do not yield could all end if those that do were not there, whoever came first.
  const comesFirst = body.held > 0 || body === room.arriving.find(({ yields }) => !yields);
  return !body.yields && comesFirst ? youngest(holding.filter(({ yields }) => yields)) : undefined;
}

/** Whether the body can only wait for others of its share. */
function standsBack(room: RoomState, body: ArrivingBody, gone: Bodies): boolean {
  return body.held === 0 && (isOverPart(room, body, 1, gone) || isOverLimit(room, body, 1, gone));
}

/** Whether the share would leave too little for others if the body came in, and those of its bodies that are on their way. */
function isOverPart(room: RoomState, body: ArrivingBody, bytes: number, gone: Bodies): boolean {
  const claimed = claimedBy(room, body, gone);
  if (claimed === 0) return false;
  const used = usedByShare(room, gone).get(body.share) ?? 0;
  const need = needOf(room, body, bytes);
  return claimed + need > shareRules.timesFree * (room.capacity - totalOf(room, gone) + used - claimed - need);
}

/** Bytes that the share of `body` has, or will have once its other bodies are in. */
function claimedBy({ capacity, whole, arriving }: RoomState, body: ArrivingBody, gone: Bodies): number {
  let claimed = whole.get(body.share) ?? 0;
  for (const each of arriving) {
    if (each === body || each.held === 0 || each.share !== body.share || gone.has(each)) continue;
    claimed += Math.max(each.held, Math.min(each.claim ?? 0, capacity));
  }
  return claimed;
}

/** Whether the share has a limit of its own and would pass it. Bodies of known size count whole, so that those which are in never wait. */
export function isOverLimit(room: RoomState, body: ArrivingBody, bytes: number, gone: Bodies = nobody): boolean {
  if (body.shareLimit === null || (body.held > 0 && body.claim !== null)) return false;
  let used = room.whole.get(body.share) ?? 0;
  for (const each of room.arriving) {
    // Of those that grow, only the younger ones wait.
    if (each === body && body.held > 0) break;
    if (each === body || each.held === 0 || each.share !== body.share || gone.has(each)) continue;
    used += Math.max(each.held, Math.min(each.claim ?? 0, room.capacity));
  }
  return used > 0 && used + body.held + needOf(room, body, bytes) > body.shareLimit;
}

/** What a body needs to go on: all of it, when it is not in yet. */
function needOf({ capacity }: RoomState, { held, claim }: ArrivingBody, bytes: number): number {
  return held > 0 ? bytes : Math.min(Math.max(claim ?? 0, bytes), capacity);
}

/** The part of the room that each share may count on, with that of `body` among those that have something there or wait. */
function fairPart({ capacity, whole, arriving }: RoomState, body: ArrivingBody): number {
  const shares = new Set([body.share, ...whole.keys(), ...arriving.map(({ share }) => share)]);
  return capacity / Math.min(shares.size, shareRules.mostShares);
}

function usedByShare({ whole, arriving }: RoomState, gone: Bodies): Map<string, number> {
  const used = new Map(whole);
  for (const each of arriving) {
    if (each.held > 0 && !gone.has(each)) used.set(each.share, (used.get(each.share) ?? 0) + each.held);
  }
  return used;
}

function totalOf(room: RoomState, gone: Bodies): number {
  let total = 0;
  for (const bytes of room.whole.values()) total += bytes;
  for (const each of room.arriving) if (!gone.has(each)) total += each.held;
  return total;
}
