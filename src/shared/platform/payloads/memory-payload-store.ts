import { type BudgetName, type BudgetTimes, defaultBudgetTimes } from './in-flight-rules.ts';
import { MemoryInFlightBudget } from './memory-in-flight-budget.ts';
import { type BudgetSizes, PayloadMissingError, type PayloadOptions, type PayloadStore } from './payload-store.ts';
import { arriving } from './reserved-arrival.ts';

/** For a single process: bodies stay in memory. */
export class MemoryPayloadStore implements PayloadStore {
  readonly #bodies = new Map<
    string,
    { chunks: Buffer[]; bytes: number; budget: MemoryInFlightBudget; fairnessKey: string }
  >();
  readonly #budgets: Readonly<Record<BudgetName, MemoryInFlightBudget>>;
  readonly #sizes: BudgetSizes;

  constructor(sizes: BudgetSizes, times: BudgetTimes = defaultBudgetTimes) {
    this.#sizes = sizes;
    this.#budgets = {
      writes: new MemoryInFlightBudget(sizes.writes, times),
      imports: new MemoryInFlightBudget(sizes.imports, times),
    };
  }

  async put(
    key: string,
    body: AsyncIterable<Buffer>,
    options: PayloadOptions,
  ): Promise<{ bytes: number; encryption: null }> {
    const budget = this.#budgets[options.budget];
    const reservation = budget.enter({
      claim: options.declaredBytes,
      waits: options.budget === 'imports',
      fairnessKey: options.fairnessKey ?? '',
      keyLimit: options.keyLimit ?? null,
      gone: options.gone,
    });
    const chunks: Buffer[] = [];
    let bytes = 0;
    try {
      for await (const chunk of arriving(body, reservation, options, this.#sizes[options.budget])) {
        chunks.push(chunk);
        bytes += chunk.length;
      }
    } catch (error) {
      budget.leave(reservation);
      throw error;
    }
    budget.keep(reservation, bytes);
    this.#bodies.set(key, { chunks, bytes, budget, fairnessKey: reservation.fairnessKey });
    return { bytes, encryption: null };
  }

  async *open(key: string): AsyncGenerator<Buffer> {
    const body = this.#bodies.get(key);
    if (!body) throw new PayloadMissingError();
    yield* body.chunks;
  }

  async delete(key: string): Promise<void> {
    const body = this.#bodies.get(key);
    if (!body) return;
    this.#bodies.delete(key);
    body.budget.release(body.bytes, body.fairnessKey);
  }

  async check(): Promise<void> {}

  async close(): Promise<void> {}

  async heldByKey(budget: BudgetName): Promise<ReadonlyMap<string, number>> {
    return this.#budgets[budget].heldByKey;
  }

  bytesHeld(): number {
    return this.#budgets.writes.used + this.#budgets.imports.used;
  }
}
