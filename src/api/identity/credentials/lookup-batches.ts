import { setTimeout as sleep } from 'node:timers/promises';
import { outsideCalls } from '../../../shared/platform/lifecycle/outside-calls.ts';

interface Pending<Query> {
  readonly query: Query;
  readonly source: string;
  readonly result: PromiseWithResolvers<boolean>;
}

interface LookupBatchesOptions<Query> {
  /** The keys of the queries that deserve a lookup of their own. */
  readonly lookUp: (queries: readonly Query[]) => Promise<ReadonlySet<string>>;
  /** Time from the start of one batch to the start of the next. */
  readonly everyMs: number;
  /** Waiting queries, in total and per source. */
  readonly total: number;
  readonly perSource: number;
}

/** Runs one statement at a time, and a few per second, regardless of the number of credentials. */
export class LookupBatches<Query> {
  readonly #options: LookupBatchesOptions<Query>;
  #waiting = new Map<string, Pending<Query>>();
  #bySource = new Map<string, number>();
  #isRunning = false;
  #lastStart = Number.NEGATIVE_INFINITY;

  constructor(options: LookupBatchesOptions<Query>) {
    this.#options = options;
  }

  /** Whether the credential deserves its own lookup; null if too many lookups wait. */
  lookUp(source: string, key: string, query: Query): Promise<boolean> | null {
    const same = this.#waiting.get(key);
    if (same) return same.result.promise;
    const own = this.#bySource.get(source) ?? 0;
    if (this.#waiting.size >= this.#options.total || own >= this.#options.perSource) return null;
    const result = Promise.withResolvers<boolean>();
    this.#waiting.set(key, { query, source, result });
    this.#bySource.set(source, own + 1);
    if (!this.#isRunning) void outsideCalls(() => this.#run());
    return result.promise;
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#waiting.size > 0) {
      const waitMs = this.#lastStart + this.#options.everyMs - performance.now();
      if (waitMs > 0) await sleep(waitMs);
      this.#lastStart = performance.now();
      const batch = this.#waiting;
      this.#waiting = new Map();
      this.#bySource = new Map();
      try {
        const found = await this.#options.lookUp([...batch.values()].map(({ query }) => query));
        for (const [key, { result }] of batch) result.resolve(found.has(key));
      } catch (error) {
        for (const { result } of batch.values()) result.reject(error);
      }
    }
    this.#isRunning = false;
  }
}
