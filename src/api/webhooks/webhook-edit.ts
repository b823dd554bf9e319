import { InvalidRequestError } from '../../shared/platform/errors/errors.ts';
import { checkSecret, checkWebhook, setsCommitStatus, urlOriginOf } from '../../shared/webhooks/webhook.ts';
import type { WebhookRow } from '../../shared/webhooks/webhook-repository.ts';
import { revisionOf } from '../platform/edits/revisions.ts';
import type { WebhookRequest } from './webhooks.schemas.ts';

/** The CLI sends this value to remove a secret. */
export const removedSecret = '__remove-secret';

/** What the owner of a webhook sets, without the secret. */
type Definition = Pick<WebhookRow, 'displayName' | 'url' | 'format' | 'isActive' | 'events' | 'groups'>;

/** Throws InvalidRequestError. */
export function changed(before: Definition, request: WebhookRequest): Definition {
  // The CLI sends the whole webhook, without empty lists.
  const isWhole = request.displayName != null && request.payloadUrl != null && request.active != null;
  const listOf = (names: readonly string[] | null | undefined, known: readonly string[]): string[] =>
    names === undefined && !isWhole ? [...known] : [...new Set(names ?? [])];
  const after = {
    displayName: request.displayName ?? before.displayName,
    url: request.payloadUrl ?? before.url,
    format: request.format || before.format,
    isActive: request.active ?? before.isActive,
    events: listOf(request.filters, before.events),
    groups: listOf(request.groups, before.groups),
  };
  checkWebhook(after);
  return after;
}

/** Undefined: unchanged; null: none. Throws InvalidRequestError. */
export function secretOf({ secret }: WebhookRequest): string | null | undefined {
  if (!secret) return undefined;
  if (secret === removedSecret) return null;
  checkSecret(secret);
  return secret;
}

/**
 * The secret must not go to another address, as a token or a signature: a user who may change the webhook does not know it. Different paths
 * of one server may belong to different tenants, and a token is sent unchanged. Throws InvalidRequestError.
 */
export function assertKeepsSecret(before: Definition, after: Definition): void {
  if (urlOriginOf(after.url) !== urlOriginOf(before.url))
    throw new InvalidRequestError(
      'A webhook that moves to a different server needs a new secret or none: include the secret in the request',
    );
  if (setsCommitStatus(after.format) && (after.format !== before.format || after.url !== before.url))
    throw new InvalidRequestError(
      'A commit status with another URL or format needs its token again or none: include the secret in the request',
    );
}

/** Covers the fields that `update` sets. An edit with a secret always counts as a change, because the secret is not compared. */
export function revisionOfWebhook({
  displayName,
  editedMicros,
  encrypted,
  events,
  format,
  groups,
  isActive,
  url,
}: WebhookRow): string {
  const secret = encrypted === null ? null : editedMicros;
  return revisionOf({ displayName, events, format, groups, isActive, secret, url });
}
