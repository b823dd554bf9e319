import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { PayloadTooLargeError, UnavailableError } from '../errors/errors.ts';
import { HandoverMissingError, type HandoverOptions, type HandoverStore } from './handover-store.ts';
import { redisCall, untilReady, withinLimit } from './redis.ts';
import { SetPieceCommand } from './set-piece-command.ts';

/** Measured: binary values of this size keep Redis responsive, larger ones stall it. */
const chunkBytes = 512 * 1024;
/** Longer than any call waits for its job. What is older belongs to nobody. */
const lifeSeconds = 3600;
const roomPollMs = 200;
const roomWaitMs = 120_000;

const prefix = 'holdfast:body';
const heldKey = `${prefix}:held`;
const expiriesKey = `${prefix}:expiries`;

/**
 * Takes room for a body unless that exceeds the capacity; the bodies of processes that died give theirs back when their time
 * is over. A body larger than the capacity gets in when it is alone. The clock is that of Redis: those of the processes may
 * differ. Both keys go when the last body has had its time.
 */
const admitScript = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, 100)) do
  redis.call('ZREM', KEYS[2], member)
  redis.call('DECRBY', KEYS[1], string.match(member, ':(%d+)$'))
end
local held = tonumber(redis.call('GET', KEYS[1]) or '0')
local bytes = tonumber(ARGV[2])
if held > 0 and held + bytes > tonumber(ARGV[3]) then return 0 end
redis.call('ZADD', KEYS[2], now + ARGV[1], ARGV[4])
redis.call('INCRBY', KEYS[1], bytes)
redis.call('PEXPIRE', KEYS[1], ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[1])
return 1`;

const releaseScript = `
if redis.call('ZREM', KEYS[2], ARGV[1]) == 1 then
  redis.call('DECRBY', KEYS[1], string.match(ARGV[1], ':(%d+)$'))
end
return 1`;

/** A body of unknown size took room for as much as there may be: it gives back what it did not need, or takes more. */
const resizeScript = `
local expiry = redis.call('ZSCORE', KEYS[2], ARGV[1])
if expiry then
  -- In this order: a set that is empty for a moment loses its expiry.
  redis.call('ZADD', KEYS[2], expiry, ARGV[2])
  redis.call('ZREM', KEYS[2], ARGV[1])
  redis.call('DECRBY', KEYS[1], string.match(ARGV[1], ':(%d+)$') - string.match(ARGV[2], ':(%d+)$'))
end
return 1`;

/** Hand-over through Redis: a body lies there in binary pieces, outside the jobs, and goes when it is done with or expires. */
export class RedisHandoverStore implements HandoverStore {
  readonly #redis: Redis;
  readonly #capacity: number;
  #held = 0;

  constructor(redis: Redis, capacityBytes: number) {
    this.#redis = redis;
    this.#capacity = capacityBytes;
  }

  async put(key: string, body: AsyncIterable<Buffer>, options: HandoverOptions): Promise<{ bytes: number }> {
    const tooLarge = () =>
      new PayloadTooLargeError(`The body is larger than the ${options.maxBytes} bytes that this server takes`);
    if ((options.declaredBytes ?? 0) > options.maxBytes) throw tooLarge();
    let reserved = options.declaredBytes ?? Math.min(options.maxBytes, this.#capacity);
    await this.#admit(key, reserved, options.wait);
    let bytes = 0;
    let pieces = 0;
    try {
      for await (const piece of inPieces(body, Math.min(reserved, chunkBytes))) {
        bytes += piece.length;
        if (bytes > options.maxBytes) throw tooLarge();
        if (bytes > reserved) {
          await this.#resize(key, reserved, bytes);
          reserved = bytes;
        }
        const command = new SetPieceCommand(`${prefix}:${key}:${pieces++}`, piece, lifeSeconds);
        await redisCall(() => this.#redis.sendCommand(command) as Promise<unknown>);
      }
      if (bytes < reserved) {
        await this.#resize(key, reserved, bytes);
        reserved = bytes;
      }
      await redisCall(() => this.#redis.set(`${prefix}:${key}`, `${pieces} ${reserved}`, 'EX', lifeSeconds));
    } catch (error) {
      await this.#remove(key, pieces, reserved).catch(() => {});
      throw error;
    }
    return { bytes };
  }

  async *open(key: string): AsyncGenerator<Buffer> {
    const meta = await this.#meta(key);
    if (!meta) throw new HandoverMissingError();
    for (let at = 0; at < meta.pieces; at++) {
      const piece = await redisCall(() => this.#redis.getBuffer(`${prefix}:${key}:${at}`));
      if (!piece) throw new HandoverMissingError();
      yield piece;
    }
  }

  async delete(key: string): Promise<void> {
    const meta = await this.#meta(key);
    if (meta) await this.#remove(key, meta.pieces, meta.reserved);
  }

  bytesHeld(): number {
    return this.#held;
  }

  /** Also asks how much all processes together have in flight; `bytesHeld` is the last answer. */
  async check(limitMs: number): Promise<void> {
    const deadline = performance.now() + limitMs;
    await untilReady(this.#redis, limitMs);
    const held = redisCall(() => this.#redis.get(heldKey));
    this.#held = Number((await withinLimit(held, Math.max(deadline - performance.now(), 1))) ?? 0);
  }

  async #meta(key: string): Promise<{ pieces: number; reserved: number } | null> {
    const meta = await redisCall(() => this.#redis.get(`${prefix}:${key}`));
    if (meta === null) return null;
    const [pieces, reserved] = meta.split(' ').map(Number);
    return { pieces: pieces as number, reserved: reserved as number };
  }

  async #admit(key: string, bytes: number, wait: boolean): Promise<void> {
    const deadline = performance.now() + roomWaitMs;
    for (;;) {
      const member = `${key}:${bytes}`;
      const admitted = await redisCall(() =>
        this.#redis.eval(admitScript, 2, heldKey, expiriesKey, lifeSeconds * 1000, bytes, this.#capacity, member),
      );
      if (admitted === 1) return;
      if (!wait || performance.now() > deadline) {
        throw new UnavailableError('The queue holds as many bodies as it may; please repeat the call', {
          retryAfterSeconds: 1,
        });
      }
      await sleep(roomPollMs);
    }
  }

  async #resize(key: string, from: number, to: number): Promise<void> {
    const members = [`${key}:${from}`, `${key}:${to}`];
    await redisCall(() => this.#redis.eval(resizeScript, 2, heldKey, expiriesKey, ...members));
  }

  async #remove(key: string, pieces: number, reserved: number): Promise<void> {
    const keys = Array.from({ length: pieces }, (_, at) => `${prefix}:${key}:${at}`);
    await redisCall(() => this.#redis.unlink(`${prefix}:${key}`, ...keys));
    await redisCall(() => this.#redis.eval(releaseScript, 2, heldKey, expiriesKey, `${key}:${reserved}`));
  }
}

/**
 * The body in pieces of `chunkBytes`, which share one buffer: a piece is overwritten when the next one is asked for. Buffers
 * of their own would wait for the garbage collector, 30 to 60 MB of them with four bodies at once.
 */
async function* inPieces(body: AsyncIterable<Buffer>, expectedBytes: number): AsyncGenerator<Buffer> {
  const piece = Buffer.allocUnsafeSlow(Math.max(expectedBytes, 1));
  let filled = 0;
  for await (const chunk of body) {
    for (let at = 0; at < chunk.length; ) {
      const copied = chunk.copy(piece, filled, at);
      at += copied;
      filled += copied;
      if (filled < piece.length) continue;
      yield piece;
      filled = 0;
    }
  }
  if (filled > 0) yield piece.subarray(0, filled);
}
