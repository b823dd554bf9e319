import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { chunkKeyBytes, openChunk, sealChunk, tagBytes } from '../crypto/sealed-chunk.ts';
import { UnavailableError } from '../errors/errors.ts';
import { type RedisConnection, redisCall, untilReady } from '../redis/redis.ts';
import { SetChunkCommand } from '../redis/set-chunk-command.ts';
import { withTimeout } from '../timeout/with-timeout.ts';
import { arriving, Pace, type Place } from './arriving-body.ts';
import {
  type BodySeal,
  NoRoomError,
  PayloadMissingError,
  type PayloadOptions,
  type PayloadStore,
  PayloadTamperedError,
  RoomLostError,
  type RoomSizes,
} from './payload-store.ts';
import { RedisRoom, type RedisRoomTimes } from './redis-room.ts';
import { defaultRoomTimes, type RoomName, type RoomTimes, roomNames } from './room-rules.ts';

/** Measured: binary values of this size keep Redis responsive, larger ones stall it. */
const maxChunkBytes = 512 * 1024;
const roomPollMs = 200;
/** More than any body has. What Redis says of a body is a hint, and must not cost more than this. */
const maxPieces = 65_536;
const maxMetaBytes = 100;
const prefix = 'holdfast:body';

const leaveFormerScript = `
local member = ARGV[1] .. ':' .. ARGV[2]
if redis.call('ZREM', KEYS[2], member) == 1 then redis.call('DECRBY', KEYS[1], ARGV[2]) end
return 1`;

export interface RedisPayloadTimes extends RoomTimes, RedisRoomTimes {
  /** How often a process says that it lives. */
  readonly renewMs: number;
}

const defaultTimes: RedisPayloadTimes = {
  ...defaultRoomTimes,
  lifeMs: 15_000,
  renewMs: 2_000,
  jobLifeMs: 720_000,
};

/** A body that this process has taken in, or is taking in. */
class OwnBody implements Place {
  readonly key: string;
  readonly claim: number | null;
  readonly waits: boolean;
  readonly share: string;
  readonly shareLimit: number | null;
  readonly room: RedisRoom;
  readonly pace = new Pace();
  readonly #times: RedisPayloadTimes;
  isInside = false;
  isWhole = false;
  lost = false;
  pieces = 0;
  bytes = 0;
  onLost: (error: Error) => void = () => {};

  constructor(key: string, room: RedisRoom, options: PayloadOptions, times: RedisPayloadTimes) {
    this.key = key;
    this.room = room;
    this.claim = options.declaredBytes;
    this.waits = options.room === 'imports';
    this.share = options.share ?? '';
    this.shareLimit = options.shareLimit ?? null;
    this.#times = times;
  }

  async take(bytes: number): Promise<void> {
    const { waitMs, yieldingWaitMs } = this.#times;
    const deadline = performance.now() + (this.waits ? waitMs : yieldingWaitMs);
    for (;;) {
      const answer = this.lost ? 'lost' : await this.room.take(this, bytes, this.isInside);
      if (answer === 'lost') throw new RoomLostError();
      if (answer === 'refused') throw new NoRoomError();
      // Who waits to get in has a place in the line from here on.
      this.isInside = true;
      if (answer === 'taken') return;
      if (performance.now() >= deadline) throw new NoRoomError(answer === 'no share');
      await sleep(roomPollMs);
    }
  }

  get stalled(): boolean {
    const { stallMs } = this.#times;
    return this.pace.waitedMs >= (this.waits && this.claim !== null ? stallMs.withOthers : stallMs.withYielding);
  }

  lose(): void {
    this.lost = true;
    this.onLost(new RoomLostError());
  }
}

/**
 * Hand-over through Redis: a body lies there in binary pieces, outside the jobs, and goes when it is done with or expires. Each piece is
 * sealed under a key of the body's own, which Redis never has, with its number and name: what was changed there does not open. Until
 * it is whole its process renews it; what is left of a process that died is gone within seconds. A whole body stays for as long
 * as its job may wait, whatever becomes of the process.
 */
export class RedisPayloadStore implements PayloadStore {
  readonly #redis: RedisConnection;
  readonly #rooms: Readonly<Record<RoomName, RedisRoom>>;
  readonly #sizes: RoomSizes;
  readonly #times: RedisPayloadTimes;
  readonly #own = new Map<string, OwnBody>();
  #renewal: NodeJS.Timeout | undefined;
  #held = 0;

  constructor(redis: RedisConnection, sizes: RoomSizes, times: Partial<RedisPayloadTimes> = {}) {
    this.#redis = redis;
    this.#sizes = sizes;
    this.#times = { ...defaultTimes, ...times };
    this.#rooms = {
      writes: new RedisRoom(redis, 'writes', sizes.writes, this.#times),
      imports: new RedisRoom(redis, 'imports', sizes.imports, this.#times),
    };
  }

  async put(
    key: string,
    body: AsyncIterable<Buffer>,
    options: PayloadOptions,
  ): Promise<{ bytes: number; seal: BodySeal }> {
    const sealKey = randomBytes(chunkKeyBytes);
    const own = new OwnBody(key, this.#rooms[options.room], options, this.#times);
    this.#adopt(own);
    try {
      const chunkBytes = Math.min(options.declaredBytes ?? maxChunkBytes, maxChunkBytes);
      for await (const piece of inPieces(arriving(body, own, options, this.#sizes[options.room]), chunkBytes)) {
        const at = own.pieces++;
        const name = pieceKey(key, at);
        const command = new SetChunkCommand(name, piece, sealChunk(sealKey, at, name, piece), this.#times.lifeMs);
        await redisCall(() => this.#redis.sendCommand(command) as Promise<unknown>);
        own.bytes += piece.length;
      }
      const meta = { key: bodyKey(key), text: `${own.pieces} ${own.bytes} ${options.room}` };
      // A body of no bytes has taken none.
      if (!own.isInside) await own.take(0);
      if (!(await own.room.keep(key, own.bytes, meta, pieceKeys(key, own.pieces)))) throw new RoomLostError();
      own.isWhole = true;
    } catch (error) {
      this.#disown(key);
      const isOutside = error instanceof NoRoomError && !own.isInside;
      if (!isOutside) await this.#remove(own).catch(() => {});
      throw error;
    }
    return { bytes: own.bytes, seal: { key: sealKey, pieces: own.pieces, bytes: own.bytes } };
  }

  async *open(key: string, seal: BodySeal | null): AsyncGenerator<Buffer> {
    if (!seal) throw new PayloadMissingError();
    let bytes = 0;
    for (let at = 0; at < seal.pieces; at++) {
      const name = pieceKey(key, at);
      const piece = openChunk(seal.key, at, name, await this.#readPiece(name));
      if (!piece) throw new PayloadTamperedError();
      bytes += piece.length;
      yield piece;
    }
    if (bytes !== seal.bytes) throw new PayloadTamperedError();
  }

  async delete(key: string): Promise<void> {
    const own = this.#own.get(key);
    this.#disown(key);
    const meta = await this.#meta(key);
    if (meta) await this.#remove({ key, ...meta });
    else if (own) await own.room.leave(key, own.bytes);
  }

  bytesHeld(): number {
    return this.#held;
  }

  /** Also asks how much all processes together have in flight; `bytesHeld` is the last answer. */
  async check(limitMs: number): Promise<void> {
    const deadline = performance.now() + limitMs;
    await untilReady(this.#redis, limitMs);
    const held = Promise.all([this.#rooms.writes.held(), this.#rooms.imports.held()]);
    const [writes, imports] = await withTimeout(
      held,
      Math.max(deadline - performance.now(), 1),
      () => new UnavailableError(`No answer from Redis within ${limitMs} ms`),
    );
    this.#held = writes + imports;
  }

  async close(): Promise<void> {
    clearInterval(this.#renewal);
    this.#renewal = undefined;
    this.#own.clear();
  }

  #adopt(own: OwnBody): void {
    this.#own.set(own.key, own);
    this.#renewal ??= setInterval(() => void this.#renewAll(), this.#times.renewMs).unref();
  }

  #disown(key: string): void {
    this.#own.delete(key);
    if (this.#own.size === 0) {
      clearInterval(this.#renewal);
      this.#renewal = undefined;
    }
  }

  async #renewAll(): Promise<void> {
    for (const own of [...this.#own.values()]) {
      // Redis may be away: what is not renewed in time is lost, and whoever needs it is told.
      await this.#renew(own).catch(() => {});
    }
  }

  async #renew(own: OwnBody): Promise<void> {
    if (!own.isWhole) {
      if (!own.isInside) return;
      const renewed = await own.room.renew(own.key, pieceKeys(own.key, own.pieces), own.stalled);
      if (!renewed && !own.isWhole) own.lose();
      return;
    }
    // A worker that is done with a body gives its room back, unless it is of another release or Redis did not hear it.
    if ((await redisCall(() => this.#redis.exists(bodyKey(own.key)))) === 1) return;
    this.#disown(own.key);
    await own.room.leave(own.key, own.bytes);
  }

  /** A piece as Redis has it, of which no more than a byte too much is ever read. */
  async #readPiece(name: string): Promise<Buffer> {
    const sealed = await redisCall(() =>
      this.#redis.getrangeBuffer(name, 0, maxChunkBytes + tagBytes).catch(ofWrongType),
    );
    if (sealed === null) throw new PayloadTamperedError();
    if (sealed.length === 0) throw new PayloadMissingError();
    return sealed;
  }

  async #meta(key: string): Promise<{ pieces: number; bytes: number; room: Pick<RedisRoom, 'leave'> } | null> {
    const text = await redisCall(() => this.#redis.getrange(bodyKey(key), 0, maxMetaBytes).catch(ofWrongType));
    const [, pieces, bytes, room] = /^(\d{1,5}) (\d{1,15})(?: (\w+))?$/.exec(text ?? '') ?? [];
    if (Number(pieces ?? maxPieces) >= maxPieces) return null;
    const at = roomNames.find((name) => name === room);
    return { pieces: Number(pieces), bytes: Number(bytes), room: at ? this.#rooms[at] : { leave: this.#leaveFormer } };
  }

  /** Bodies of the release before count elsewhere, and their processes still ask there for room. */
  readonly #leaveFormer = async (key: string, bytes: number): Promise<void> => {
    await redisCall(() => this.#redis.eval(leaveFormerScript, 2, `${prefix}:held`, `${prefix}:expiries`, key, bytes));
  };

  async #remove(body: { key: string; pieces: number; bytes: number; room: Pick<RedisRoom, 'leave'> }): Promise<void> {
    const { key, pieces, bytes, room } = body;
    await redisCall(() => this.#redis.unlink(bodyKey(key), ...pieceKeys(key, pieces)));
    await room.leave(key, bytes);
  }
}

/** Null where something else than a text lies under a key; other faults are thrown on. */
function ofWrongType(error: unknown): null {
  if (error instanceof Error && error.message.startsWith('WRONGTYPE')) return null;
  throw error;
}

function bodyKey(key: string): string {
  return `${prefix}:${key}`;
}

function pieceKey(key: string, at: number): string {
  return `${prefix}:${key}:${at}`;
}

function pieceKeys(key: string, pieces: number): string[] {
  return Array.from({ length: pieces }, (_, at) => pieceKey(key, at));
}

/**
 * The body in pieces of `chunkBytes`, which share one buffer: a piece is overwritten when the next one is asked for. Buffers
 * of their own would wait for the garbage collector, 30 to 60 MB of them with four bodies at once.
 */
async function* inPieces(body: AsyncIterable<Buffer>, chunkBytes: number): AsyncGenerator<Buffer> {
  const piece = Buffer.allocUnsafeSlow(Math.max(chunkBytes, 1));
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
