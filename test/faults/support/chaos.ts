import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { Cluster } from '../../../testkit/cluster.ts';
import type { ClusterProcess } from '../../../testkit/cluster-process.ts';
import type { SmallDisk } from '../../support/small-disk.ts';
import { attackAtRandom } from './attack.ts';
import type { Clock } from './clocks.ts';
import type { S3Gate, Weather } from './s3-gate.ts';
import type { WayToPostgres } from './way-to-postgres.ts';

/** Random numbers determined by a seed. */
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

/** Everything that can be broken apart from the processes themselves. */
export interface Fragile {
  readonly gates: readonly S3Gate[];
  /** Between all processes and Postgres. */
  readonly wayToPostgres: WayToPostgres;
  readonly apiClocks: readonly Clock[];
  readonly workerClocks: readonly Clock[];
  /** null where it cannot be set. */
  readonly postgresClock: Clock | null;
  /** Where the S3 server keeps its data; null where it cannot be filled. */
  readonly disk: SmallDisk | null;
}

type Part = ClusterProcess | S3Gate | Clock | SmallDisk | WayToPostgres;

/** Longer than the lock of a job and the interval of the check for expired locks. */
const workerFreezeMs = 23_500;

/** Breaks parts of a cluster at random and repairs them. */
export class Chaos {
  readonly counts = new Map<string, number>();
  /** When the clock of Postgres was last set; 0 when never. */
  clockSetAt = 0;
  readonly #cluster: Cluster;
  readonly #fragile: Fragile;
  readonly #random: RandomSource;
  /** Parts that are currently broken. */
  readonly #broken = new Set<Part>();
  readonly #repairing = new Set<Promise<void>>();

  constructor(cluster: Cluster, fragile: Fragile, random: RandomSource) {
    this.#cluster = cluster;
    this.#fragile = fragile;
    this.#random = random;
  }

  /** Names of all faults, longest first, so that each can be injected at least once. */
  get faults(): string[] {
    const { disk, postgresClock } = this.#fragile;
    const impossible = new Set([
      ...(disk ? [] : ['s3 disk full']),
      ...(postgresClock ? [] : ['postgres clock ahead', 'postgres clock behind']),
    ]);
    return Object.keys(this.#repertoire).filter((name) => !impossible.has(name));
  }

  /** Sets a clock; leases from before Postgres's clock was set may have expired. */
  set(clock: Clock, seconds: number): void {
    clock.set(seconds);
    if (clock === this.#fragile.postgresClock) this.clockSetAt = Date.now();
  }

  /** Injects the fault and repairs it in the background. Returns false when its target is already broken. */
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
      const isTimeFor = (name: string): boolean => name !== 'worker frozen' || Date.now() + workerFreezeMs < deadline;
      const faults = this.faults.filter(isTimeFor);
      await this.inject(faults[Math.floor(this.#random() * faults.length)] as string);
      await sleep(200 + this.#random() * 1_000);
    }
  }

  /** Resolves when all parts are repaired. */
  async settle(): Promise<void> {
    while (this.#repairing.size > 0) await Promise.all(this.#repairing);
  }

  readonly #repertoire: Record<string, () => Promise<boolean> | boolean> = {
    'worker frozen': () => this.#pause(this.#pick(this.#cluster.workers), workerFreezeMs),
    // Longer than the hasty clients wait.
    'api frozen': () => this.#pause(this.#pick(this.#cluster.apis), 5_000 + this.#random() * 2_000),
    'api killed': () => this.#kill(this.#pick(this.#cluster.apis)),
    'worker killed': () => this.#kill(this.#pick(this.#cluster.workers)),
    'redis killed': () => this.#kill(this.#cluster.redis),
    'postgres killed': () => this.#kill(this.#cluster.postgres as ClusterProcess),
    's3 killed': () => this.#kill(this.#cluster.s3),
    'redis flushed': () => this.#flush(),
    'redis attacker': () => attackAtRandom(this.#cluster, this.#random),
    's3 failing': () => this.#cloud('failing'),
    's3 lying': () => this.#cloud('lying'),
    's3 slow': () => this.#cloud('slow'),
    's3 cut': () => this.#cloud('cut'),
    'worker paused': () => this.#pause(this.#pick(this.#cluster.workers), 500 + this.#random() * 2_500),
    'redis paused': () => this.#pause(this.#cluster.redis, 500 + this.#random() * 2_000),
    'postgres silent': () => this.#silence(this.#fragile.wayToPostgres),
    'postgres paused': () => this.#pause(this.#cluster.postgres as ClusterProcess, 500 + this.#random() * 1_500),
    'api clock jumps': () => this.#shift(this.#pick(this.#fragile.apiClocks), this.#pick([-3_600, 3_600])),
    'worker clock jumps': () => this.#shift(this.#pick(this.#fragile.workerClocks), this.#pick([-3_600, 3_600])),
    'postgres clock ahead': () => this.#shift(this.#fragile.postgresClock as Clock, 3_600),
    'postgres clock behind': () => this.#shift(this.#fragile.postgresClock as Clock, -3_600),
    's3 disk full': () => this.#fill(this.#fragile.disk as SmallDisk),
    'worker stopped in order': () => this.#restart(this.#pick(this.#cluster.workers)),
  };

  #pick<T>(choices: readonly T[]): T {
    return choices[Math.floor(this.#random() * choices.length)] as T;
  }

  async #kill(part: ClusterProcess): Promise<boolean> {
    if (!this.#claim(part)) return false;
    await part.kill();
    const downMs = 100 + this.#random() * 1_000;
    this.#repair(part, async () => {
      await sleep(downMs);
      await startAgain(part);
    });
    return true;
  }

  #restart(part: ClusterProcess): boolean {
    if (!this.#claim(part)) return false;
    this.#repair(part, async () => {
      await part.stop();
      await startAgain(part);
    });
    return true;
  }

  #pause(part: ClusterProcess, ms: number): boolean {
    if (!this.#claim(part)) return false;
    part.pause();
    this.#repair(part, async () => {
      await sleep(ms);
      part.resume();
    });
    return true;
  }

  /** Like a host that vanishes: no connection breaks, but none of them ever sends anything again. */
  #silence(way: WayToPostgres): boolean {
    if (!this.#claim(way)) return false;
    way.vanish();
    const ms = 500 + this.#random() * 2_000;
    this.#repair(way, async () => {
      await sleep(ms);
      way.reappear();
    });
    return true;
  }

  #cloud(weather: Weather): boolean {
    const gate = this.#pick(this.#fragile.gates);
    if (!this.#claim(gate)) return false;
    gate.weather = weather;
    const ms = 500 + this.#random() * 2_000;
    this.#repair(gate, async () => {
      await sleep(ms);
      gate.weather = 'fine';
    });
    return true;
  }

  #shift(clock: Clock, seconds: number): boolean {
    if (!this.#claim(clock)) return false;
    const ms = 500 + this.#random() * 2_000;
    this.set(clock, seconds);
    this.#repair(clock, async () => {
      await sleep(ms);
      this.set(clock, 0);
    });
    return true;
  }

  #fill(disk: SmallDisk): boolean {
    if (!this.#claim(disk)) return false;
    disk.fill();
    const ms = 500 + this.#random() * 1_500;
    this.#repair(disk, async () => {
      await sleep(ms);
      disk.freeCapacity();
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

  #claim(part: Part): boolean {
    if (this.#broken.has(part)) return false;
    this.#broken.add(part);
    return true;
  }

  #repair(part: Part, work: () => Promise<void>): void {
    const repairing = work().finally(() => {
      this.#broken.delete(part);
      this.#repairing.delete(repairing);
    });
    // Reported by `settle`.
    repairing.catch(() => {});
    this.#repairing.add(repairing);
  }
}

/** A part that starts while another one is down ends at once; its supervisor starts it again. */
async function startAgain(part: ClusterProcess): Promise<void> {
  const deadline = Date.now() + 300_000;
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
