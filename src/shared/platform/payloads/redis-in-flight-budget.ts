import { isCluster, type RedisConnection, redisCall } from '../redis/redis.ts';
import type { BudgetName, WaitLimits } from './in-flight-rules.ts';
import { inFlightScript } from './in-flight-script.ts';

const releaseScript = `
local function releaseComplete(key, bytes)
  local share = redis.call('HGET', KEYS[4], key) or ''
  redis.call('HDEL', KEYS[4], key)
  if tonumber(bytes) > 0 and redis.call('HINCRBY', KEYS[2], share, -bytes) <= 0 then redis.call('HDEL', KEYS[2], share) end
end
`;

/** Uses the clock of Redis: the processes' clocks may differ. */
const bodyScript = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function decode(key, text)
  local body = cjson.decode(text)
  body.key = key
  if body.expires > now then return body end
end
local function find(key)
  local text = redis.call('HGET', KEYS[1], key)
  return text and decode(key, text)
end
local function save(body)
  local key = body.key
  body.key = nil
  redis.call('HSET', KEYS[1], key, cjson.encode(body))
  body.key = key
end
local function keepKeys(life)
  for at = 1, 4 do redis.call('PEXPIRE', KEYS[at], life) end
end
`;

/**
 * Loads the budget of all processes: a hash of the arriving bodies, the bytes of complete bodies by fairness key (`share` in Redis), and
 * the expiry and key of each complete body. Removes expired reservations of dead processes.
 */
const loadScript = `${releaseScript}${bodyScript}
for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now, 'LIMIT', 0, 100)) do
  redis.call('ZREM', KEYS[3], member)
  releaseComplete(string.match(member, '^(.*):(%d+)$'))
end
local budget = { complete = {}, arriving = {} }
local complete = redis.call('HGETALL', KEYS[2])
for at = 1, #complete, 2 do budget.complete[complete[at]] = tonumber(complete[at + 1]) end
local arriving = budget.arriving
local fields = redis.call('HGETALL', KEYS[1])
for at = 1, #fields, 2 do
  local body = decode(fields[at], fields[at + 1])
  if body then arriving[#arriving + 1] = body else redis.call('HDEL', KEYS[1], fields[at]) end
end
local function older(one, other)
  if one.since ~= other.since then return one.since < other.since end
  return one.key < other.key
end
table.sort(arriving, older)
`;

/** Returns an `AcquireResult`, the number of waiting bodies, and how many are ahead; 0 for the first of its key. */
const acquireScript = `${loadScript}${inFlightScript}
local request = cjson.decode(ARGV[1])
local bytes = request.bytes
budget.capacity = request.capacity
local body
for _, each in ipairs(arriving) do
  if each.key == request.key then body = each end
end
if not body then
  if request.mode == 'inside' then return { 'lost', 0, 0 } end
  body = {
    key = request.key, since = now, held = 0, claim = request.claim, yields = request.yields, share = request.share, limit = request.limit,
    blocked = 0, stalled = false, leaves = false
  }
  arriving[#arriving + 1] = body
end
if body.leaves then return { 'lost', 0, 0 } end

local result = 'no-budget'
body.stalled = false
local sums = sumUp(budget, {})
if mayAcquire(sums, body, bytes) then
  result = 'acquired'
  body.held = body.held + bytes
  body.blocked = 0
elseif request.mode == 'refuse' and not mayWait(sums, body, bytes) then
  return { 'refused', 0, 0 }
else
  if isOverLimit(sums, body, bytes) then result = 'key limit' end
  if body.blocked == 0 then body.blocked = now end
  for _, evicted in ipairs(chooseEvictions(budget, body, bytes, now, request.withYielding, request.withOthers)) do
    evicted.leaves = true
    save(evicted)
  end
end
body.expires = now + request.life
save(body)
keepKeys(request.jobLife)

local waiting, ahead, isFirst = 0, 0, true
for _, each in ipairs(arriving) do
  if each.blocked > 0 then
    if each == body then ahead = (isFirst or body.held > 0) and 0 or waiting end
    if each.share == body.share then isFirst = false end
    waiting = waiting + 1
  end
end
return { result, waiting, ahead }`;

/** `key limit`: the body waits for others of its own key. `lost`: the body no longer has a reservation. */
type AcquireResult = 'acquired' | 'no-budget' | 'key limit' | 'refused' | 'lost';

const pollMs = 200;
const maxPollMs = 5_000;
/** The pause per waiting body. Each attempt loads all bodies; with this pause, all attempts together leave Redis mostly free for others. */
const pollMsPerWaiting = 1.5;
/** The oldest bodies, and the oldest of each key, try most often. */
const aheadPerPoll = 8;

/** Includes the chunks. Returns 0 if the reservation is lost. */
const renewScript = `${bodyScript}
local body = find(ARGV[1])
if not body or body.leaves then return 0 end
body.expires = now + ARGV[2]
body.stalled = ARGV[3] == '1'
save(body)
for at = 5, #KEYS do
  if redis.call('PEXPIRE', KEYS[at], ARGV[2]) == 0 then return 0 end
end
return 1`;

/** Keeps a complete body for the maximum life of its job. Returns 0 if the reservation or a chunk is lost. */
const keepScript = `${bodyScript}
local body = find(ARGV[1])
if not body then return 0 end
for at = 6, #KEYS do
  if redis.call('PEXPIRE', KEYS[at], ARGV[4]) == 0 then return 0 end
end
redis.call('HDEL', KEYS[1], ARGV[1])
if tonumber(ARGV[2]) > 0 then redis.call('HINCRBY', KEYS[2], body.share, ARGV[2]) end
redis.call('ZADD', KEYS[3], now + ARGV[4], ARGV[1] .. ':' .. ARGV[2])
redis.call('HSET', KEYS[4], ARGV[1], body.share)
if KEYS[5] then redis.call('SET', KEYS[5], ARGV[3], 'PX', ARGV[4]) end
keepKeys(ARGV[4])
return 1`;

/** In a cluster, a body's keys are in another slot than its budget's. Returns 0 if a chunk is lost. */
const renewBodyScript = `
for at = 1, #KEYS do
  if redis.call('PEXPIRE', KEYS[at], ARGV[1]) == 0 then return 0 end
end
return 1`;

const keepBodyScript = `
for at = 2, #KEYS do
  if redis.call('PEXPIRE', KEYS[at], ARGV[2]) == 0 then return 0 end
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`;

const leaveScript = `${releaseScript}
redis.call('HDEL', KEYS[1], ARGV[1])
if redis.call('ZREM', KEYS[3], ARGV[1] .. ':' .. ARGV[2]) == 1 then releaseComplete(ARGV[1], ARGV[2]) end
return 1`;

const heldScript = `${loadScript}
local held = budget.complete
for _, body in ipairs(arriving) do held[body.share] = (held[body.share] or 0) + body.held end
local list = {}
for share, bytes in pairs(held) do
  list[#list + 1] = share
  list[#list + 1] = bytes
end
return list`;

export interface RedisBudgetTimes {
  readonly patience: WaitLimits;
  /** Arriving bodies of a dead process expire after this time. */
  readonly lifeMs: number;
  /** A complete body is kept this long for its job. */
  readonly jobLifeMs: number;
}

export interface RedisReservation {
  readonly key: string;
  readonly claim: number | null;
  readonly waits: boolean;
  readonly fairnessKey: string;
  readonly keyLimit: number | null;
}

/** For the bodies of all processes, with the rules of `in-flight-rules.ts`. */
export class RedisInFlightBudget {
  readonly #redis: RedisConnection;
  readonly #keys: readonly string[];
  /** In a cluster, the budget and its bodies are in different slots. */
  readonly #isSplit: boolean;
  readonly #capacity: number;
  readonly #times: RedisBudgetTimes;

  constructor(redis: RedisConnection, name: BudgetName, capacity: number, times: RedisBudgetTimes) {
    this.#redis = redis;
    this.#isSplit = isCluster(redis);
    const budget = `holdfast:budget:${this.#isSplit ? `{${name}}` : name}`;
    this.#keys = ['arriving', 'whole', 'lives', 'shares'].map((part) => `${budget}:${part}`);
    this.#capacity = capacity;
    this.#times = times;
  }

  /** Only a body that holds nothing yet and may not wait is `refused`. A waiting body tries again after `pauseMs`. */
  async acquire(
    reservation: RedisReservation,
    bytes: number,
    isInside: boolean,
  ): Promise<{ result: AcquireResult; pauseMs: number }> {
    const { patience, lifeMs, jobLifeMs } = this.#times;
    const request = {
      key: reservation.key,
      bytes,
      capacity: this.#capacity,
      mode: isInside ? 'inside' : reservation.waits ? 'wait' : 'refuse',
      claim: reservation.claim ?? -1,
      yields: !reservation.waits || reservation.claim === null,
      share: reservation.fairnessKey,
      limit: reservation.keyLimit ?? -1,
      life: lifeMs,
      jobLife: jobLifeMs,
      ...patience,
    };
    const answer = await this.#run(acquireScript, [], [JSON.stringify(request)]);
    const [result, waiting, ahead] = answer as [AcquireResult, number, number];
    return { result, pauseMs: pauseMs(waiting, ahead) };
  }

  /** Publishes whether the sender has stalled. Returns false if the reservation is lost. */
  async renew(key: string, chunks: readonly string[], stalled: boolean): Promise<boolean> {
    if (this.#isSplit && chunks.length > 0) {
      if ((await this.#runOnBody(renewBodyScript, chunks, [this.#times.lifeMs])) !== 1) return false;
    }
    return (
      (await this.#run(renewScript, this.#isSplit ? [] : chunks, [key, this.#times.lifeMs, stalled ? '1' : '0'])) === 1
    );
  }

  /** `meta` and the complete body stay for the life of its job. Returns false if the reservation or a chunk is lost. */
  async keep(
    key: string,
    bytes: number,
    meta: { key: string; text: string },
    chunks: readonly string[],
  ): Promise<boolean> {
    const { jobLifeMs } = this.#times;
    const body = [meta.key, ...chunks];
    if ((await this.#run(keepScript, this.#isSplit ? [] : body, [key, bytes, meta.text, jobLifeMs])) !== 1)
      return false;
    // In this order, the budget never counts fewer bytes than Redis holds.
    return !this.#isSplit || (await this.#runOnBody(keepBodyScript, body, [meta.text, jobLifeMs])) === 1;
  }

  /** Releases `bytes` of a complete body, otherwise the reservation. */
  async leave(key: string, bytes: number): Promise<void> {
    await this.#run(leaveScript, [], [key, bytes]);
  }

  async heldByKey(): Promise<Map<string, number>> {
    const list = (await this.#run(heldScript, [], [])) as (string | number)[];
    const held = new Map<string, number>();
    for (let at = 0; at < list.length; at += 2) held.set(String(list[at]), Number(list[at + 1]));
    return held;
  }

  #runOnBody(script: string, keys: readonly string[], values: readonly (string | number)[]): Promise<unknown> {
    return redisCall(() => this.#redis.eval(script, keys.length, ...keys, ...values));
  }

  #run(script: string, keys: readonly string[], values: readonly (string | number)[]): Promise<unknown> {
    return redisCall(() =>
      this.#redis.eval(script, this.#keys.length + keys.length, ...this.#keys, ...keys, ...values),
    );
  }
}

function pauseMs(waiting: number, ahead: number): number {
  return Math.min(Math.max(pollMs, pollMsPerWaiting * waiting) * (1 + ahead / aheadPerPoll), maxPollMs);
}
