import type { AppContext } from '../../shared/context.ts';
import { createDeliveryRepository } from '../../shared/webhooks/delivery-repository.ts';
import { untilNoneLeft } from '../platform/until-none-left.ts';

/** The time for which the log of webhooks is kept. */
const logDays = 30;
const eventsAtOnce = 1_000;
const deliveriesAtOnce = 5_000;

/** Deletes events that were delivered or abandoned long ago, and events without remaining deliveries. */
export async function deleteOldDeliveries({ db }: Pick<AppContext, 'db'>, signal: AbortSignal): Promise<void> {
  const deliveries = createDeliveryRepository(db);
  await untilNoneLeft(deliveriesAtOnce, signal, deliveries.deleteOrphans);
  await untilNoneLeft(eventsAtOnce, signal, (limit) => deliveries.deleteOld(logDays, limit));
}
