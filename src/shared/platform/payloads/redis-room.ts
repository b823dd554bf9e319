import { type RedisConnection, redisCall } from '../redis/redis.ts';
import type { Patience, RoomName } from './room-rules.ts';
import { roomRulesScript } from './room-script.ts';

/** Gives back what a whole body had. */
const giveScript = `
local function giveWhole(key, bytes)
  local share = redis.call('HGET', KEYS[4], key) or ''
  redis.call('HDEL', KEYS[4], key)
  if tonumber(bytes) > 0 and redis.call('HINCRBY', KEYS[2], share, -bytes) <= 0 then redis.call('HDEL', KEYS[2], share) end
end
`;

/**
 * What all processes together hold in one room: a hash of the bodies on their way in, the bytes of the whole ones by share, and of
 * each whole one its time and its share. The clock is that of Redis: those of the processes may differ. What a dead process held
 * goes when its time is over.
 */
const lookScript = `${giveScript}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now, 'LIMIT', 0, 100)) do
  redis.call('ZREM', KEYS[3], member)
  giveWhole(string.match(member, '^(.*):(%d+)$'))
end
local room = { whole = {}, arriving = {} }
local sums = redis.call('HGETALL', KEYS[2])
for at = 1, #sums, 2 do room.whole[sums[at]] = tonumber(sums[at + 1]) end
local arriving = room.arriving
local fields = redis.call('HGETALL', KEYS[1])
for at = 1, #fields, 2 do
  local body = cjson.decode(fields[at + 1])
  body.key = fields[at]
  if body.expires <= now then
    redis.call('HDEL', KEYS[1], body.key)
  else
    arriving[#arriving + 1] = body
  end
end
local function older(one, other)
  if one.since ~= other.since then return one.since < other.since end
  return one.key < other.key
end
table.sort(arriving, older)
local function find(key)
  for _, body in ipairs(arriving) do
    if body.key == key then return body end
  end
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

/** Asks the rules, and answers one of `answers`. */
const takeScript = `${lookScript}${roomRulesScript}
local ask = cjson.decode(ARGV[1])
local bytes = ask.bytes
room.capacity = ask.capacity
local body = find(ask.key)
if not body then
  if ask.at == 'inside' then return 'lost' end
  body = {
    key = ask.key, since = now, held = 0, claim = ask.claim, yields = ask.yields, share = ask.share, limit = ask.limit,
    blocked = 0, stalled = false, leaves = false
  }
  arriving[#arriving + 1] = body
end
if body.leaves then return 'lost' end

local answer = 'no room'
body.stalled = false
if mayTake(room, body, bytes, {}) then
  answer = 'taken'
  body.held = body.held + bytes
  body.blocked = 0
elseif ask.at == 'refused' and not mayWait(room, body, bytes) then
  return 'refused'
else
  if isOverLimit(room, body, bytes, {}) then answer = 'no share' end
  if body.blocked == 0 then body.blocked = now end
  for _, leaving in ipairs(whoGivesWay(room, body, bytes, now, ask.withYielding, ask.withOthers)) do
    leaving.leaves = true
    save(leaving)
  end
end
body.expires = now + ask.life
save(body)
keepKeys(ask.jobLife)
return answer`;

/** What a body is told that asks for room. `no share`: it waits for bodies of its own share. `lost`: it was inside and is not any more. */
type Answer = 'taken' | 'no room' | 'no share' | 'refused' | 'lost';

/** Renews a body on its way in, and its pieces. Answers 0 when its place is lost. */
const renewScript = `${lookScript}
local body = find(ARGV[1])
if not body or body.leaves then return 0 end
body.expires = now + ARGV[2]
body.stalled = ARGV[3] == '1'
save(body)
for at = 5, #KEYS do
  if redis.call('PEXPIRE', KEYS[at], ARGV[2]) == 0 then return 0 end
end
return 1`;

/** Makes a body whole, for as long as its job may take. Answers 0 when its place, or one of its pieces, is lost. */
const keepScript = `${lookScript}
local body = find(ARGV[1])
if not body then return 0 end
for at = 6, #KEYS do
  if redis.call('PEXPIRE', KEYS[at], ARGV[4]) == 0 then return 0 end
end
redis.call('HDEL', KEYS[1], ARGV[1])
if tonumber(ARGV[2]) > 0 then redis.call('HINCRBY', KEYS[2], body.share, ARGV[2]) end
redis.call('ZADD', KEYS[3], now + ARGV[4], ARGV[1] .. ':' .. ARGV[2])
redis.call('HSET', KEYS[4], ARGV[1], body.share)
redis.call('SET', KEYS[5], ARGV[3], 'PX', ARGV[4])
keepKeys(ARGV[4])
return 1`;

const leaveScript = `${giveScript}
redis.call('HDEL', KEYS[1], ARGV[1])
if redis.call('ZREM', KEYS[3], ARGV[1] .. ':' .. ARGV[2]) == 1 then giveWhole(ARGV[1], ARGV[2]) end
return 1`;

const heldScript = `${lookScript}
local held = 0
for _, bytes in pairs(room.whole) do held = held + bytes end
for _, body in ipairs(arriving) do held = held + body.held end
return held`;

/** Times in ms. */
export interface RedisRoomTimes {
  readonly patience: Patience;
  /** What a process that died had on its way in goes after this. */
  readonly lifeMs: number;
  /** A whole body is kept for as long as this for its job. */
  readonly jobLifeMs: number;
}

/** A body on its way in, as the room is asked for it. */
export interface RedisPlace {
  readonly key: string;
  readonly claim: number | null;
  /** Whether it waits to get in rather than be refused. */
  readonly waits: boolean;
  readonly share: string;
  readonly shareLimit: number | null;
}

/** One room in Redis for the bodies of all processes, by the rules of `room-rules.ts`. */
export class RedisRoom {
  readonly #redis: RedisConnection;
  readonly #keys: readonly string[];
  readonly #capacity: number;
  readonly #times: RedisRoomTimes;

  constructor(redis: RedisConnection, name: RoomName, capacity: number, times: RedisRoomTimes) {
    this.#redis = redis;
    this.#keys = ['arriving', 'whole', 'lives', 'shares'].map((part) => `holdfast:room:${name}:${part}`);
    this.#capacity = capacity;
    this.#times = times;
  }

  /** Takes `bytes` for a body that is inside, or on its way there. `refused` is for one that is not, and may not wait. */
  async take(place: RedisPlace, bytes: number, isInside: boolean): Promise<Answer> {
    const { patience, lifeMs, jobLifeMs } = this.#times;
    const ask = {
      key: place.key,
      bytes,
      capacity: this.#capacity,
      at: isInside ? 'inside' : place.waits ? 'waits' : 'refused',
      claim: place.claim ?? -1,
      yields: !place.waits || place.claim === null,
      share: place.share,
      limit: place.shareLimit ?? -1,
      life: lifeMs,
      jobLife: jobLifeMs,
      ...patience,
    };
    return (await this.#run(takeScript, [], [JSON.stringify(ask)])) as Answer;
  }

  /** Lets the body and its pieces live on, and tells the others whether its sender has stalled; false when its place is lost. */
  async renew(key: string, pieces: readonly string[], stalled: boolean): Promise<boolean> {
    return (await this.#run(renewScript, pieces, [key, this.#times.lifeMs, stalled ? '1' : '0'])) === 1;
  }

  /** Makes the body whole: writes `meta` under its key, for the life of its job. False when its place, or a piece, is lost. */
  async keep(
    key: string,
    bytes: number,
    meta: { key: string; text: string },
    pieces: readonly string[],
  ): Promise<boolean> {
    const kept = await this.#run(keepScript, [meta.key, ...pieces], [key, bytes, meta.text, this.#times.jobLifeMs]);
    return kept === 1;
  }

  /** Gives back what a body has, whole with `bytes` or not. */
  async leave(key: string, bytes: number): Promise<void> {
    await this.#run(leaveScript, [], [key, bytes]);
  }

  /** Bytes that all processes together hold. */
  async held(): Promise<number> {
    return (await this.#run(heldScript, [], [])) as number;
  }

  #run(script: string, keys: readonly string[], values: readonly (string | number)[]): Promise<unknown> {
    return redisCall(() =>
      this.#redis.eval(script, this.#keys.length + keys.length, ...this.#keys, ...keys, ...values),
    );
  }
}
