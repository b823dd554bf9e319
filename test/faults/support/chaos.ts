import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { Cluster } from '../../../e2e/support/cluster.ts';
import type { ClusterProcess } from '../../../e2e/support/cluster-process.ts';
import type { S3Gate, Weather } from './s3-gate.ts';

/** Random numbers that a seed repeats. */
export type RandomSource = () => number;

export function randomOf(seed: number): RandomSource {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Breaks parts of a cluster at random and mends them again. */
export class Chaos {
  readonly counts = new Map<string, number>();
  readonly #cluster: Cluster;
  readonly #gates: readonly S3Gate[];
  readonly #random: RandomSource;
  /** Parts that are broken at the moment. */
  readonly #broken = new Set<ClusterProcess | S3Gate>();
  readonly #mending = new Set<Promise<void>>();

  constructor(cluster: Cluster, gates: readonly S3Gate[], random: RandomSource) {
    this.#cluster = cluster;
    this.#gates = gates;
    this.#random = random;
  }

  /** Names of all faults, so that each can be injected at least once. */
  get faults(): string[] {
    return Object.keys(this.#repertoire);
  }

  /** Injects the fault; false when what it would break is broken already. It is mended in the background. */
  async inject(name: string): Promise<boolean> {
    const fault = this.#repertoire[name];
    if (!fault) throw new Error(`there is no fault ${name}`);
    const hasStruck = await fault();
    if (hasStruck) this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
    return hasStruck;
  }

  /** Injects faults one after another until `deadline`. */
  async rage(deadline: number): Promise<void> {
    while (Date.now() < deadline) {
      const { faults } = this;
      await this.inject(faults[Math.floor(this.#random() * faults.length)] as string);
      await sleep(200 + this.#random() * 1_000);
    }
  }

  /** Resolves when all is mended. */
  async settle(): Promise<void> {
    while (this.#mending.size > 0) await Promise.all(this.#mending);
  }

  readonly #repertoire: Record<string, () => Promise<boolean> | boolean> = {
    'api killed': () => this.#kill(this.#pick(this.#cluster.apis)),
    'worker killed': () => this.#kill(this.#pick(this.#cluster.workers)),
    'redis killed': () => this.#kill(this.#cluster.redis),
    'postgres killed': () => this.#kill(this.#cluster.postgres as ClusterProcess),
    's3 killed': () => this.#kill(this.#cluster.s3),
    'redis flushed': () => this.#flush(),
    's3 failing': () => this.#cloud('failing'),
    's3 lying': () => this.#cloud('lying'),
    's3 slow': () => this.#cloud('slow'),
    's3 cut': () => this.#cloud('cut'),
    'worker paused': () => this.#pause(this.#pick(this.#cluster.workers), 500 + this.#random() * 2_500),
    'redis paused': () => this.#pause(this.#cluster.redis, 500 + this.#random() * 2_000),
    'postgres paused': () => this.#pause(this.#cluster.postgres as ClusterProcess, 500 + this.#random() * 1_500),
    'worker stopped in order': () => this.#restart(this.#pick(this.#cluster.workers)),
  };

  #pick<T>(choices: readonly T[]): T {
    return choices[Math.floor(this.#random() * choices.length)] as T;
  }

  async #kill(part: ClusterProcess): Promise<boolean> {
    if (!this.#claim(part)) return false;
    await part.kill();
    const downMs = 100 + this.#random() * 1_000;
    this.#mend(part, async () => {
      await sleep(downMs);
      await startAgain(part);
    });
    return true;
  }

  #restart(part: ClusterProcess): boolean {
    if (!this.#claim(part)) return false;
    this.#mend(part, async () => {
      await part.stop();
      await startAgain(part);
    });
    return true;
  }

  #pause(part: ClusterProcess, ms: number): boolean {
    if (!this.#claim(part)) return false;
    part.pause();
    this.#mend(part, async () => {
      await sleep(ms);
      part.resume();
    });
    return true;
  }

  #cloud(weather: Weather): boolean {
    const gate = this.#pick(this.#gates);
    if (!this.#claim(gate)) return false;
    gate.weather = weather;
    const ms = 500 + this.#random() * 2_000;
    this.#mend(gate, async () => {
      await sleep(ms);
      gate.weather = 'fine';
    });
    return true;
  }

  async #flush(): Promise<boolean> {
    const redis = new Redis(this.#cluster.redisUrl, {
      lazyConnect: true,
      maxRetriesPerRequest: 0,
      connectTimeout: 1_000,
      commandTimeout: 2_000,
    });
    redis.on('error', () => {});
    try {
      await redis.connect();
      await redis.flushall();
      return true;
    } catch {
      return false;
    } finally {
      redis.disconnect();
    }
  }

  #claim(part: ClusterProcess | S3Gate): boolean {
    if (this.#broken.has(part)) return false;
    this.#broken.add(part);
    return true;
  }

  #mend(part: ClusterProcess | S3Gate, work: () => Promise<void>): void {
    const mending = work().finally(() => {
      this.#broken.delete(part);
      this.#mending.delete(mending);
    });
    // Told by `settle`.
    mending.catch(() => {});
    this.#mending.add(mending);
  }
}

/** A part that starts while another one is down ends at once; whoever supervises it starts it again. */
async function startAgain(part: ClusterProcess): Promise<void> {
  const deadline = Date.now() + 60_000;
  for (;;) {
    try {
      return await part.start();
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await part.kill();
      await sleep(300);
    }
  }
}
