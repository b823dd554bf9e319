import { randomBytes } from 'node:crypto';
import { chunkKeyBytes, encryptChunk, openChunk, tagBytes } from '../crypto/encrypted-chunk.ts';
import { UnavailableError } from '../errors/errors.ts';
import { outsideCalls } from '../lifecycle/outside-calls.ts';
import { isCluster, type RedisConnection, redisCall, untilReady } from '../redis/redis.ts';
import { SetChunkCommand } from '../redis/set-chunk-command.ts';
import { withTimeout } from '../timeout/with-timeout.ts';
import { type BudgetName, budgetNames } from './in-flight-rules.ts';
import {
  type BodyEncryption,
  BudgetExhaustedError,
  type BudgetSizes,
  PayloadMissingError,
  type PayloadOptions,
  type PayloadStore,
  PayloadTamperedError,
  ReservationLostError,
} from './payload-store.ts';
import { BodyReleases, type CompleteBody } from './redis-body-releases.ts';
import { RedisInFlightBudget } from './redis-in-flight-budget.ts';
import { defaultTimes, type RedisPayloadTimes, RedisReservation, WaitingBodies } from './redis-reservation.ts';
import { arriving } from './reserved-arrival.ts';

/** Measured: Redis stalls with larger binary values. */
const maxChunkBytes = 512 * 1024;
/** Limits the cost of untrusted metadata from Redis. No body has so many chunks. */
const maxChunks = 65_536;
const maxMetaBytes = 100;
const prefix = 'holdfast:body';

/**
 * A body is stored as binary chunks, separate from the jobs, until it is deleted or expires. Each chunk is encrypted under the body's own
 * key, which Redis never has, with its number and name: a changed chunk cannot be decrypted. The process renews the body until it is
 * complete; bodies of a dead process expire within seconds. A complete body stays for the maximum life of its job, even if the process
 * dies.
 */
export class RedisPayloadStore implements PayloadStore {
  readonly #redis: RedisConnection;
  readonly #keys: BodyKeys;
  readonly #budgets: Readonly<Record<BudgetName, RedisInFlightBudget>>;
  readonly #sizes: BudgetSizes;
  readonly #times: RedisPayloadTimes;
  readonly #waiting = { writes: new WaitingBodies(), imports: new WaitingBodies() };
  readonly #own = new Map<string, RedisReservation>();
  readonly #releases: BodyReleases;
  #renewal: NodeJS.Timeout | undefined;
  #held = 0;

  constructor(redis: RedisConnection, sizes: BudgetSizes, times: Partial<RedisPayloadTimes> = {}) {
    this.#redis = redis;
    this.#keys = new BodyKeys(redis);
    this.#sizes = sizes;
    this.#times = { ...defaultTimes, ...times };
    this.#budgets = {
      writes: new RedisInFlightBudget(redis, 'writes', sizes.writes, this.#times),
      imports: new RedisInFlightBudget(redis, 'imports', sizes.imports, this.#times),
    };
    const find = (key: string) => this.#find(key);
    const remove = (body: CompleteBody) => this.#remove(body);
    const { repeatMs, jobLifeMs } = this.#times;
    this.#releases = new BodyReleases({ redis, find, remove, repeatMs, jobLifeMs });
  }

  async put(
    key: string,
    body: AsyncIterable<Buffer>,
    options: PayloadOptions,
  ): Promise<{ bytes: number; encryption: BodyEncryption }> {
    const chunkKey = randomBytes(chunkKeyBytes);
    const { budget } = options;
    const own = new RedisReservation(
      key,
      { budget: this.#budgets[budget], waiting: this.#waiting[budget] },
      options,
      this.#times,
    );
    this.#adopt(own);
    try {
      const chunkBytes = Math.min(options.declaredBytes ?? maxChunkBytes, maxChunkBytes);
      for await (const chunk of inChunks(arriving(body, own, options, this.#sizes[options.budget]), chunkBytes)) {
        const at = own.chunks++;
        const name = this.#keys.chunk(key, at);
        const command = new SetChunkCommand(name, chunk, encryptChunk(chunkKey, at, name, chunk), this.#times.lifeMs);
        await redisCall(() => this.#redis.sendCommand(command) as Promise<unknown>);
        own.bytes += chunk.length;
      }
      const meta = { key: this.#keys.body(key), text: `${own.chunks} ${own.bytes} ${options.budget}` };
      // An empty body has acquired no capacity yet.
      if (!own.isInside) await own.acquire(0);
      own.isEnding = true;
      if (!(await own.budget.keep(key, own.bytes, meta, this.#keys.chunks(key, own.chunks))))
        throw new ReservationLostError();
      own.isComplete = true;
    } catch (error) {
      const isOutside = error instanceof BudgetExhaustedError && !own.isInside;
      this.#disown(key);
      // An arriving body's reservation expires within seconds, so its release need not be repeated.
      if (own.isEnding) await this.#release(key, own).catch(() => {});
      else if (!isOutside) await this.#remove(own).catch(() => {});
      throw error;
    }
    return { bytes: own.bytes, encryption: { key: chunkKey, chunks: own.chunks, bytes: own.bytes } };
  }

  async *open(key: string, encryption: BodyEncryption | null): AsyncGenerator<Buffer> {
    if (!encryption) throw new PayloadMissingError();
    let bytes = 0;
    let ahead = encryption.chunks > 0 ? this.#readChunk(this.#keys.chunk(key, 0)) : null;
    for (let at = 0; at < encryption.chunks && ahead; at++) {
      const name = this.#keys.chunk(key, at);
      const encrypted = await ahead;
      // The next chunk is loaded while this one is used.
      ahead = at + 1 < encryption.chunks ? this.#readChunk(this.#keys.chunk(key, at + 1)) : null;
      // The reader may stop before it needs the next chunk.
      ahead?.catch(() => {});
      const chunk = openChunk(encryption.key, at, name, encrypted);
      if (!chunk) throw new PayloadTamperedError();
      bytes += chunk.length;
      yield chunk;
    }
    if (bytes !== encryption.bytes) throw new PayloadTamperedError();
  }

  async delete(key: string): Promise<void> {
    const own = this.#own.get(key) ?? null;
    this.#disown(key);
    await this.#release(key, own);
  }

  bytesHeld(): number {
    return this.#held;
  }

  heldByKey(budget: BudgetName): Promise<ReadonlyMap<string, number>> {
    return this.#budgets[budget].heldByKey();
  }

  /** Also updates `bytesHeld`, the bytes of all processes. */
  async check(limitMs: number): Promise<void> {
    const deadline = performance.now() + limitMs;
    await untilReady(this.#redis, limitMs);
    const held = Promise.all([this.heldByKey('writes'), this.heldByKey('imports')]);
    const budgets = await withTimeout(
      held,
      Math.max(deadline - performance.now(), 1),
      () => new UnavailableError(`No answer from Redis within ${limitMs} ms`),
    );
    this.#held = budgets.flatMap((budget) => [...budget.values()]).reduce((sum, bytes) => sum + bytes, 0);
  }

  async close(): Promise<void> {
    this.#releases.close();
    this.#own.clear();
    this.#stopIfIdle();
  }

  #adopt(own: RedisReservation): void {
    this.#own.set(own.key, own);
    this.#start();
  }

  #disown(key: string): void {
    this.#own.delete(key);
    this.#stopIfIdle();
  }

  #start(): void {
    this.#renewal ??= outsideCalls(() => setInterval(() => void this.#renewAll(), this.#times.renewMs).unref());
  }

  #stopIfIdle(): void {
    if (this.#own.size > 0 || this.#releases.size > 0) return;
    clearInterval(this.#renewal);
    this.#renewal = undefined;
  }

  async #renewAll(): Promise<void> {
    const renewals = [...this.#own.values()].map(async (own) => {
      if (own.isBeingRenewed) return;
      own.isBeingRenewed = true;
      // Bodies that are not renewed in time, e.g. because Redis is away, are lost, and their callers get an error.
      await this.#renew(own).catch(() => {});
      own.isBeingRenewed = false;
    });
    await Promise.all([this.#releases.repeat(), ...renewals]);
    this.#stopIfIdle();
  }

  async #renew(own: RedisReservation): Promise<void> {
    if (!own.isComplete) {
      if (!own.isInside || own.isEnding) return;
      const renewed = await own.budget.renew(own.key, this.#keys.chunks(own.key, own.chunks), own.stalled);
      if (!renewed && !own.isEnding) own.lose();
      return;
    }
    // A worker releases the capacity after the job, unless it is of another release or the body did not reach Redis.
    if ((await redisCall(() => this.#redis.exists(this.#keys.body(own.key)))) === 1) return;
    // Not final as in `delete`: another server may have the body and its job.
    await own.budget.leave(own.key, own.bytes);
    this.#disown(own.key);
  }

  /** A release is repeated with the next renewals if Redis is down: the reservation may outlive the outage. */
  #release(key: string, body: CompleteBody | null): Promise<void> {
    this.#start();
    return this.#releases.add(key, body);
  }

  /** Reads at most one byte beyond the maximum size. */
  async #readChunk(name: string): Promise<Buffer> {
    const encrypted = await redisCall(() =>
      this.#redis.getrangeBuffer(name, 0, maxChunkBytes + tagBytes).catch(nullIfWrongType),
    );
    if (encrypted === null) throw new PayloadTamperedError();
    if (encrypted.length === 0) throw new PayloadMissingError();
    return encrypted;
  }

  async #find(key: string): Promise<CompleteBody | null> {
    const text = await redisCall(() =>
      this.#redis.getrange(this.#keys.body(key), 0, maxMetaBytes).catch(nullIfWrongType),
    );
    const [, chunks, bytes, budget] = /^(\d{1,5}) (\d{1,15}) (\w+)$/.exec(text ?? '') ?? [];
    if (Number(chunks ?? maxChunks) >= maxChunks) return null;
    const at = budgetNames.find((name) => name === budget);
    return at ? { key, chunks: Number(chunks), bytes: Number(bytes), budget: this.#budgets[at] } : null;
  }

  async #remove({ key, chunks, bytes, budget }: CompleteBody): Promise<void> {
    await redisCall(() => this.#redis.unlink(this.#keys.body(key), ...this.#keys.chunks(key, chunks)));
    await budget.leave(key, bytes);
  }
}

function nullIfWrongType(error: unknown): null {
  if (error instanceof Error && error.message.startsWith('WRONGTYPE')) return null;
  throw error;
}

/** In a cluster, the keys of one body share a slot, unlike those of different bodies. */
class BodyKeys {
  readonly #tagged: boolean;

  constructor(redis: RedisConnection) {
    this.#tagged = isCluster(redis);
  }

  body(key: string): string {
    return `${prefix}:${this.#tagged ? `{${key}}` : key}`;
  }

  chunk(key: string, at: number): string {
    return `${this.body(key)}:${at}`;
  }

  chunks(key: string, count: number): string[] {
    return Array.from({ length: count }, (_, at) => this.chunk(key, at));
  }
}

/**
 * Each chunk is overwritten by the next. Separate buffers would wait for the garbage collector, and take 30 to 60 MB with four bodies at
 * once.
 */
async function* inChunks(body: AsyncIterable<Buffer>, chunkBytes: number): AsyncGenerator<Buffer> {
  const buffer = Buffer.allocUnsafeSlow(Math.max(chunkBytes, 1));
  let filled = 0;
  for await (const part of body) {
    for (let at = 0; at < part.length; ) {
      const copied = part.copy(buffer, filled, at);
      at += copied;
      filled += copied;
      if (filled < buffer.length) continue;
      yield buffer;
      filled = 0;
    }
  }
  if (filled > 0) yield buffer.subarray(0, filled);
}
