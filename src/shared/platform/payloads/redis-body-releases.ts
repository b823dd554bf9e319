import { isCluster, type RedisConnection } from '../redis/redis.ts';
import type { RedisInFlightBudget } from './redis-in-flight-budget.ts';

export interface CompleteBody {
  readonly key: string;
  readonly chunks: number;
  readonly bytes: number;
  readonly budget: Pick<RedisInFlightBudget, 'leave'>;
}

interface Release {
  readonly key: string;
  body: CompleteBody | null;
  readonly endsAt: number;
  /** The number of lost connections when Redis confirmed the release; null until then. */
  confirmedAt: number | null;
  isRunning: boolean;
}

export interface BodyReleasesOptions {
  readonly redis: RedisConnection;
  readonly find: (key: string) => Promise<CompleteBody | null>;
  /** Must also succeed when it has succeeded before. */
  readonly remove: (body: CompleteBody) => Promise<void>;
  /** How long a release is repeated after a lost connection. */
  readonly repeatMs: number;
  /** After this time, Redis keeps no body, even if it was not released. */
  readonly jobLifeMs: number;
}

const maxAtOnce = 50;

/**
 * Repeats each release until Redis confirms it. A failover can undo a confirmed release: if the new master has not received it, the body
 * and its reservation exist again, and no process would release them. Therefore releases are remembered for a while, and repeated after
 * every lost connection.
 */
export class BodyReleases {
  readonly #options: BodyReleasesOptions;
  readonly #releases = new Map<string, Release>();
  readonly #lossEvent: 'close' | '-node';
  #lost = 0;

  constructor(options: BodyReleasesOptions) {
    this.#options = options;
    // A cluster does not report a reconnection to another server, but it does report a lost connection.
    this.#lossEvent = isCluster(options.redis) ? '-node' : 'close';
    options.redis.on(this.#lossEvent, this.#onLoss);
  }

  /** Releases that may have to be repeated. */
  get size(): number {
    return this.#releases.size;
  }

  /** Throws QueueUnavailableError if Redis has not confirmed the release, which is then repeated. */
  async add(key: string, body: CompleteBody | null): Promise<void> {
    const known = body ?? this.#releases.get(key)?.body ?? null;
    const endsAt = performance.now() + this.#options.repeatMs;
    const release: Release = { key, body: known, endsAt, confirmedAt: null, isRunning: false };
    this.#releases.set(key, release);
    await this.#attempt(release);
  }

  /** Forgets releases that need no more repetition. Never rejects. */
  async repeat(): Promise<void> {
    const now = performance.now();
    for (const { key, endsAt, confirmedAt } of this.#releases.values()) {
      const isConfirmed = confirmedAt === this.#lost;
      if (now >= (isConfirmed ? endsAt : endsAt + this.#options.jobLifeMs)) this.#releases.delete(key);
    }
    const due = [...this.#releases.values()].filter((each) => each.confirmedAt !== this.#lost).values();
    const repeatNext = async (): Promise<void> => {
      for (const release of due) if (!release.isRunning) await this.#attempt(release).catch(() => {});
    };
    await Promise.all(Array.from({ length: maxAtOnce }, repeatNext));
  }

  close(): void {
    this.#options.redis.off(this.#lossEvent, this.#onLoss);
    this.#releases.clear();
  }

  async #attempt(release: Release): Promise<void> {
    const { find, remove } = this.#options;
    const lost = this.#lost;
    release.isRunning = true;
    try {
      release.body ??= await find(release.key);
      if (release.body) await remove(release.body);
      release.confirmedAt = lost;
    } finally {
      release.isRunning = false;
    }
  }

  readonly #onLoss = (): void => {
    this.#lost++;
  };
}
