import type { Logger } from '../../logger/logger.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { AcquireTimeoutError } from '../connection-gate.ts';
import { type Database, openDatabase } from '../database.ts';
import { queryLimit } from '../postgres-driver.ts';
import type { Queryable } from '../sql.ts';
import {
  type PrimaryPosition,
  readPrimaryPosition,
  readReplicaPosition,
  type Unfit,
  unfitness,
} from './replica-position.ts';
import { type Lost, ReplicaRead } from './replica-read.ts';

/** Unless `serving`, the primary serves all reads. */
export type ReplicaState = 'starting' | 'serving' | 'away' | 'behind' | Unfit;

const states: readonly ReplicaState[] = [
  ...(['starting', 'serving', 'away', 'behind'] as const),
  ...(['not a standby', 'another cluster', 'another timeline'] as const),
];

const checkEveryMs = 1_000;
/** A read that reaches a limit continues on the primary. */
const limits = {
  connectTimeoutMs: 2_000,
  statementTimeoutMs: 10_000,
  acquireTimeoutMs: 1_000,
  checkMs: 2_000,
} as const;
/** Positions of the primary that the replica has not reached yet; enough for an hour. */
const maxUnreached = 3_600;

interface ReplicaOptions {
  readonly url: string;
  readonly poolSize: number;
  readonly statementTimeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly acquireTimeoutMs: number;
}

/**
 * Each read is at least as new as the primary was at its beginning, so it is never older than the data that a client has seen through any
 * process. The primary serves reads that the replica cannot.
 */
export class Replica {
  readonly #primary: Database;
  readonly #replica: Database;
  readonly #logger: Logger;
  readonly #metrics: Metrics;
  #state: ReplicaState = 'starting';
  /** False after a failed read, until the next check. */
  #isUsable = false;
  #lagBytes = 0;
  #unreached: { readonly flushed: number; readonly at: number }[] = [];
  /** The running position query, and the next one, for which new callers wait. */
  #asking: Promise<unknown> = Promise.resolve();
  #nextAsked: Promise<PrimaryPosition> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #checking: Promise<void> = Promise.resolve();
  #isClosed = false;

  private constructor(parts: { primary: Database; replica: Database; logger: Logger; metrics: Metrics }) {
    this.#primary = parts.primary;
    this.#replica = parts.replica;
    this.#logger = parts.logger;
    this.#metrics = parts.metrics;
    this.#registerGauges();
    this.#check();
  }

  /** Does not wait for the replica. */
  static async open(
    options: ReplicaOptions,
    parts: { primary: Database; logger: Logger; metrics: Metrics },
  ): Promise<Replica> {
    const replica = await openDatabase({
      url: options.url,
      poolSize: options.poolSize,
      setting: 'HOLDFAST_DATABASE_REPLICA_URL',
      connectTimeoutMs: Math.min(options.connectTimeoutMs, limits.connectTimeoutMs),
      statementTimeoutMs: Math.min(options.statementTimeoutMs, limits.statementTimeoutMs),
      acquireTimeoutMs: Math.min(options.acquireTimeoutMs, limits.acquireTimeoutMs),
    });
    return new Replica({ ...parts, replica });
  }

  get state(): ReplicaState {
    return this.#state;
  }

  get acquired(): number {
    return this.#replica.poolState().acquired;
  }

  /**
   * The read is at least as new as everything committed before this call. Returns null if the primary must serve it. The result falls back
   * to the primary, statement by statement, and then stays there: a read never goes back in time.
   */
  async begin(): Promise<Queryable | null> {
    if (!this.#isUsable) {
      this.#metrics.replicaReads.labels('primary').inc();
      return null;
    }
    const least = await this.#position();
    return new ReplicaRead({
      primary: this.#primary,
      replica: this.#replica,
      least,
      onServed: (server) => this.#metrics.replicaReads.labels(server).inc(),
      onLost: (lost) => this.#lose(lost),
    }).queryable;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#timer) clearTimeout(this.#timer);
    await this.#checking;
    await this.#replica.close();
  }

  /** Uses a statement that begins after this call. All callers that wait for it share it. */
  #position(): Promise<PrimaryPosition> {
    this.#nextAsked ??= this.#asking.then(() => {
      this.#nextAsked = null;
      const asked = readPrimaryPosition(this.#primary);
      this.#asking = asked.catch(() => {});
      return asked;
    });
    return this.#nextAsked;
  }

  #lose({ reason, error }: Lost): void {
    this.#metrics.replicaFallbacks.labels(reason).inc();
    if (reason !== 'conflict' && reason !== 'busy' && reason !== 'moved') this.#isUsable = false;
    this.#logger.debug({ reason, err: error }, 'a read continues at the primary');
  }

  #check(): void {
    this.#checking = this.#findState().then(([state, error]) => {
      this.#isUsable = state === 'serving';
      this.#enter(state, error);
      if (this.#isClosed) return;
      this.#timer = setTimeout(() => this.#check(), checkEveryMs).unref();
    });
  }

  async #findState(): Promise<[ReplicaState, unknown?]> {
    let primary: PrimaryPosition;
    try {
      primary = await queryLimit.run(limits.checkMs, () => readPrimaryPosition(this.#primary));
    } catch {
      // The error does not concern the replica. Reads that need the primary's position fail with it.
      return [this.#state];
    }
    try {
      const replica = await queryLimit.run(limits.checkMs, () => readReplicaPosition(this.#replica));
      const unfit = unfitness(replica, primary);
      if (unfit) return [unfit];
      this.#lagBytes = Math.max(0, primary.flushed - replica.replayed);
      this.#unreached = this.#unreached.filter(({ flushed }) => flushed > replica.replayed).slice(-maxUnreached);
      // The replica has not reached a position of the primary that is more than a second old.
      const isBehind = this.#unreached.length > 0;
      if (this.#lagBytes > 0) this.#noteUnreached(primary.flushed);
      return [isBehind ? 'behind' : 'serving'];
    } catch (error) {
      // All connections are in use by reads that make progress.
      if (error instanceof AcquireTimeoutError && this.#state === 'serving') return ['serving'];
      this.#noteUnreached(primary.flushed);
      return ['away', error];
    }
  }

  #noteUnreached(flushed: number): void {
    const last = this.#unreached.at(-1)?.flushed ?? 0;
    if (flushed > last) this.#unreached.push({ flushed, at: performance.now() });
  }

  #enter(state: ReplicaState, error?: unknown): void {
    if (state === this.#state) return;
    this.#state = state;
    if (state === 'serving') this.#logger.info('the replica of the database serves reads');
    else this.#logger.warn({ state, err: error }, 'the replica of the database serves no reads; the primary does');
  }

  #registerGauges(): void {
    this.#metrics.gaugeBy(
      'holdfast_replica_state',
      'The state of the replica: 1 for the current state, 0 for the others. It serves reads only in state `serving`.',
      'state',
      () => Object.fromEntries(states.map((state) => [state, state === this.#state ? 1 : 0])),
    );
    this.#metrics.gauge(
      'holdfast_replica_lag_bytes',
      'Bytes of the log that the replica had not replayed at the last check.',
      () => this.#lagBytes,
    );
    this.#metrics.gauge(
      'holdfast_replica_lag_seconds',
      'Time since the replica was last known to have everything that the primary had; 0 if it has.',
      () => {
        const [oldest] = this.#unreached;
        return oldest ? (performance.now() - oldest.at) / 1000 : 0;
      },
    );
    this.#metrics.gauge(
      'holdfast_replica_connections_acquired',
      'Connections to the replica in use.',
      () => this.acquired,
    );
  }
}
