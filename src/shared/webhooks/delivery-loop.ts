import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../platform/db/database.ts';
import type { Lifecycle } from '../platform/lifecycle/lifecycle.ts';
import { repeat } from '../platform/lifecycle/repeat.ts';
import type { Logger } from '../platform/logger/logger.ts';
import type { ReadOnlyMode } from '../platform/read-only/read-only-mode.ts';
import type { Metrics } from '../platform/telemetry/metrics.ts';
import { claimSeconds, type DeliveryAttempts } from './delivery-attempt.ts';
import { type ClaimedDelivery, createDeliveryRepository, type DeliveryShare } from './delivery-repository.ts';

/** In this process. */
const attemptsAtOnce = 32;
const pollMs = 1_000;
/** Between two claims while deliveries are due. */
const claimMs = 100;

interface Parts {
  readonly db: Database;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly deliveryAttempts: DeliveryAttempts;
}

/** Any number of processes may run the loop; each attempt is made by one of them. */
export class DeliveryLoop {
  readonly #parts: Parts;
  readonly #share: DeliveryShare;
  readonly #running = new Set<Promise<void>>();

  constructor(parts: Parts, share: DeliveryShare) {
    this.#parts = parts;
    this.#share = share;
  }

  /** Returns the number of begun attempts. */
  async begin(signal: AbortSignal): Promise<number> {
    const { db } = this.#parts;
    const limit = attemptsAtOnce - this.#running.size;
    if (limit <= 0 || signal.aborted || !(await createDeliveryRepository(db).isAnyDue())) return 0;
    const claimed = await db.inTransaction((tx) =>
      createDeliveryRepository(tx).claim({ limit, seconds: claimSeconds, share: this.#share }),
    );
    for (const delivery of claimed) {
      const attempt = this.#attempt(delivery, signal).finally(() => this.#running.delete(attempt));
      this.#running.add(attempt);
    }
    return claimed.length;
  }

  /**
   * Begins more attempts whenever some have ended, until none are due. A receiver that responds at once need not wait for the next poll.
   * `isFenced` is checked before each round, since this may run for hours under constant load.
   */
  async deliver(signal: AbortSignal, isFenced: () => boolean): Promise<void> {
    while (!isFenced() && (await this.begin(signal)) > 0) {
      const pause = (ms: number) => sleep(ms, undefined, { ref: false, signal }).catch(() => {});
      const running = [...this.#running];
      await pause(claimMs);
      await Promise.race([pause(pollMs), ...running]);
    }
  }

  async #attempt(delivery: ClaimedDelivery, signal: AbortSignal): Promise<void> {
    const { logger, metrics, deliveryAttempts } = this.#parts;
    try {
      const { state } = await deliveryAttempts.attempt(delivery, signal);
      metrics.webhookAttempts.labels(state === 'waiting' ? 'retried' : state).inc();
    } catch (error) {
      metrics.webhookAttempts.labels('error').inc();
      logger.warn({ webhookId: delivery.webhookId, err: error }, 'a webhook delivery failed and is retried');
    }
  }

  async settle(): Promise<void> {
    await Promise.all(this.#running);
  }
}

export function startWebhooks(
  context: Parts & { readonly lifecycle: Lifecycle; readonly readOnly: ReadOnlyMode },
  share: DeliveryShare,
): void {
  const { lifecycle, logger, readOnly } = context;
  const delivery = new DeliveryLoop(context, share);
  const rounds = repeat(
    pollMs,
    (signal) => delivery.deliver(signal, () => readOnly.isFenced),
    (error) => logger.warn({ err: error }, 'webhooks could not be delivered'),
  );
  lifecycle.onClose('work', 'webhooks', async () => {
    await rounds.stop();
    await delivery.settle();
  });
}
