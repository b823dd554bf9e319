import { outsideCalls } from '../../../shared/platform/lifecycle/outside-calls.ts';
import type { Logger } from '../../../shared/platform/logger/logger.ts';
import { withTimeout } from '../../../shared/platform/timeout/with-timeout.ts';

/** Many leases may have expired after an outage. */
const maxReclaims = 8;
/** A stopping process waits this long for its reclaims. The next call for the stack, or a task, does the rest. */
const closeMs = 2_000;

/** Reclaims the stacks of waiting calls from updates with expired leases. A reclaim may compact a journal, so no call waits for it. */
export class StackReclaims {
  readonly #reclaim: (stackId: string) => Promise<void>;
  readonly #logger: Logger;
  readonly #running = new Map<string, Promise<void>>();

  constructor(reclaim: (stackId: string) => Promise<void>, logger: Logger) {
    this.#reclaim = reclaim;
    this.#logger = logger;
  }

  /** Does nothing if the stack is being reclaimed, or if too many reclaims run. */
  begin(stackId: string, onReclaimed: () => void): void {
    if (this.#running.has(stackId) || this.#running.size >= maxReclaims) return;
    const reclaim = outsideCalls(() => this.#reclaim(stackId))
      .then(onReclaimed)
      .catch((error: unknown) =>
        this.#logger.warn({ err: error, stackId }, 'update queue: a stack could not be reclaimed'),
      )
      .finally(() => void this.#running.delete(stackId));
    this.#running.set(stackId, reclaim);
  }

  async close(): Promise<void> {
    const rest = Promise.all(this.#running.values());
    await withTimeout(rest, closeMs, () => new Error('Stacks are still being reclaimed')).catch(() => {});
  }
}
