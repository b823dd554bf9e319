import type { Queryable } from '../platform/db/sql.ts';
import { createWebhookEventRepository } from './webhook-event-repository.ts';
import { type WebhookEventName, webhookEvents } from './webhook-events.ts';

/**
 * Call this in the transaction of the change: the event is delivered if and only if that commits. Takes one statement, even without
 * webhooks. `details` are a few values, and never contain a secret.
 */
export async function recordWebhookEvent(
  tx: Queryable,
  event: WebhookEventName,
  about: {
    readonly organizationId: string;
    readonly stackId: string | null;
    readonly updateId?: string | null;
    readonly details?: Readonly<Record<string, unknown>>;
  },
): Promise<void> {
  const { details = {}, organizationId, stackId, updateId = null } = about;
  const { group } = webhookEvents[event];
  await createWebhookEventRepository(tx).notify({
    organizationId,
    stackId,
    updateId,
    event,
    group,
    details: JSON.stringify(details),
  });
}
