import { ciRunOf } from '../../shared/audit/audit-event.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import type { Logger } from '../../shared/platform/logger/logger.ts';
import { commitOf } from '../../shared/updates/commit.ts';
import type { FrozenError } from '../../shared/updates/rules/freeze.ts';
import { recordWebhookEvent } from '../../shared/webhooks/record-webhook-event.ts';
import type { Caller } from '../platform/http/request.ts';
import type { PreparedCreation } from './update-creation.ts';

/** `isWaiting`: the update waits for the end of the freeze. */
export async function notifyOfFreeze(
  db: Queryable,
  { environment, kind, organizationId, stackId }: PreparedCreation,
  { error, caller, isWaiting }: { readonly error: FrozenError; readonly caller: Caller; readonly isWaiting: boolean },
): Promise<void> {
  const { note, id: rule } = error.rule;
  const { 'build.url': ciUrl = null } = JSON.parse(ciRunOf(environment) ?? '{}') as { readonly 'build.url'?: string };
  const details = { text: note, rule, kind, by: caller.login, isWaiting, commit: commitOf(environment), ciUrl };
  await recordWebhookEvent(db, 'update_frozen', { organizationId, stackId, details });
}

/** A separate transaction, on which the refusal does not depend. */
export async function notifyOfRefusal(
  { db, logger }: { readonly db: Queryable; readonly logger: Logger },
  creation: PreparedCreation,
  by: { readonly error: FrozenError; readonly caller: Caller },
): Promise<void> {
  await notifyOfFreeze(db, creation, { ...by, isWaiting: false }).catch((error: unknown) =>
    logger.warn({ err: error }, 'webhooks could not be notified of an update refused by a freeze'),
  );
}
