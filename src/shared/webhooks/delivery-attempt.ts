import { createHmac } from 'node:crypto';
import type { Database } from '../platform/db/database.ts';
import type { Logger } from '../platform/logger/logger.ts';
import type { Outgoing } from '../platform/outgoing/outgoing.ts';
import { isAccepted, post } from '../platform/outgoing/post.ts';
import { currentTrace, inRootSpan, inSpan } from '../platform/tracing/tracing.ts';
import type { EncryptedSecrets } from '../secrets/encrypted-secrets.ts';
import { MasterKeyError } from '../secrets/key-ring.ts';
import { isReplaced, statusRequestOf } from './commit-status.ts';
import { leftOut, type Message, outcomeOf } from './delivery-outcome.ts';
import { type AttemptRecord, type ClaimedDelivery, createDeliveryRepository } from './delivery-repository.ts';
import { type EventFacts, factsOf } from './event-facts.ts';
import { eventHeaders, payloadOf } from './payloads.ts';
import { setsCommitStatus, urlOriginOf } from './webhook.ts';
import { createWebhookEventRepository, type EventSource } from './webhook-event-repository.ts';

const timeoutMs = 10_000;
/** Longer than all waits of an attempt together. */
export const claimSeconds = 60;
/** After this much of the claim, nothing is sent any more: the process was stopped for a while. */
const lastSendMs = 30_000;

/** The encryption of the secret is bound to this owner. */
export function secretOwner(webhookId: string): string {
  return `webhook ${webhookId}`;
}

interface AttemptParts {
  readonly db: Database;
  readonly outgoing: Outgoing;
  readonly secrets: EncryptedSecrets;
  readonly logger: Logger;
  readonly findUnusual: (updateId: string) => Promise<readonly string[]>;
}

/** For workers, and for calls that wait for an attempt. */
export class DeliveryAttempts {
  readonly #db: Database;
  readonly #outgoing: Outgoing;
  readonly #secrets: EncryptedSecrets;
  readonly #logger: Logger;
  readonly #findUnusual: AttemptParts['findUnusual'];

  constructor(parts: AttemptParts) {
    this.#db = parts.db;
    this.#outgoing = parts.outgoing;
    this.#secrets = parts.secrets;
    this.#logger = parts.logger;
    this.#findUnusual = parts.findUnusual;
  }

  /** Throws if the result cannot be recorded; then the claim expires, and the attempt is made again under the same `webhook-id`. */
  attempt(delivery: ClaimedDelivery, signal: AbortSignal): Promise<AttemptRecord> {
    const { attempts, event, format, webhookId } = delivery;
    const attributes = {
      'holdfast.webhook': webhookId,
      'holdfast.event': event,
      'holdfast.format': format,
      'holdfast.attempt': attempts,
    };
    // The attempt belongs to the trace of a call that waits for it.
    const inOwnSpan = currentTrace() ? inSpan : inRootSpan;
    return inOwnSpan('webhook delivery', { role: 'client', attributes }, () => this.#attempt(delivery, signal));
  }

  async #attempt(delivery: ClaimedDelivery, signal: AbortSignal): Promise<AttemptRecord> {
    const begun = performance.now();
    const rows = createDeliveryRepository(this.#db);
    const message = await this.#messageOf(delivery);
    if ('unsent' in message) {
      const outcome = outcomeOf(delivery, null, { reason: message.unsent }, null);
      await rows.note(delivery.id, delivery.attempts, outcome);
      return outcome;
    }
    if ('leftOut' in message) {
      const outcome = leftOut(message.leftOut);
      await rows.note(delivery.id, delivery.attempts, outcome);
      return outcome;
    }
    if (signal.aborted || performance.now() - begun > lastSendMs) {
      await rows.release(delivery.id, delivery.attempts);
      return { ...leftOut('not sent'), state: 'waiting' };
    }
    const sentAt = performance.now();
    const posted = await post(this.#outgoing, message.url, { ...message, timeoutMs, signal });
    if (signal.aborted && !isAccepted(posted)) {
      await rows.release(delivery.id, delivery.attempts);
      return { ...leftOut('not sent'), state: 'waiting' };
    }
    const outcome = outcomeOf(delivery, message, posted, Math.round(performance.now() - sentAt));
    await rows.note(delivery.id, delivery.attempts, outcome);
    if (outcome.state !== 'delivered') {
      const { attempts, event, webhookId } = delivery;
      const result = 'status' in posted ? { status: posted.status } : posted;
      const facts = { webhookId, event, origin: urlOriginOf(message.url), attempts, state: outcome.state };
      this.#logger.info({ ...facts, ...result }, "a webhook's receiver refused an event");
    }
    return outcome;
  }

  async #readFacts(source: EventSource): Promise<EventFacts> {
    const { event, updateId } = source;
    const isEnd = updateId !== null && /_(succeeded|failed)$/.test(event);
    return factsOf(source, isEnd ? await this.#findUnusual(updateId) : []);
  }

  async #messageOf(
    delivery: ClaimedDelivery,
  ): Promise<Message | { readonly leftOut: string } | { readonly unsent: string }> {
    const { eventId, event, format, isActive, isManual, masterKeyId, encrypted, updateId, url, webhookId } = delivery;
    if (!isActive && !isManual) return { leftOut: 'the webhook is not active' };
    const events = createWebhookEventRepository(this.#db);
    const source = await events.readSource(eventId);
    const text = source.facts ?? (await events.keepFacts(eventId, JSON.stringify(await this.#readFacts(source))));
    const facts = JSON.parse(text) as EventFacts;
    let secret: string | null = null;
    try {
      if (encrypted !== null && masterKeyId !== null)
        secret = this.#secrets.open(secretOwner(webhookId), { masterKeyId, encrypted });
    } catch (error) {
      if (!(error instanceof MasterKeyError)) throw error;
      this.#logger.warn({ webhookId, err: error }, 'the secret of a webhook cannot be decrypted');
      return {
        unsent: 'The secret of the webhook cannot be decrypted: set it again, or ask an operator for its master key',
      };
    }
    if (setsCommitStatus(format)) {
      // The status of a running update must not arrive after the status of its end.
      if (event.endsWith('_started') && updateId && (await events.findUpdateStatus(updateId)) !== 'running')
        return { leftOut: 'the update has ended meanwhile' };
      const request = statusRequestOf(format, url, secret, facts);
      // A code host keeps the status that arrives last.
      if ('leftOut' in request || !(await isReplaced(facts, events.listLaterEnvironments))) return request;
      return { leftOut: 'a newer update of the same commit has begun' };
    }
    const body = payloadOf(format, eventId, facts);
    const seconds = Math.floor(Date.now() / 1000);
    const signature = secret === null ? {} : signatureHeaders(secret, { id: eventId, seconds, body });
    return { url, headers: { ...eventHeaders(eventId, seconds, event), ...signature }, body };
  }
}

/**
 * According to Standard Webhooks and Pulumi Cloud. A secret that begins with `whsec_` is Base64, as libraries of Standard Webhooks expect.
 * Any other secret is itself the key.
 */
function signatureHeaders(
  secret: string,
  { body, id, seconds }: { readonly id: string; readonly seconds: number; readonly body: string },
): Readonly<Record<string, string>> {
  const key = secret.startsWith('whsec_') ? Buffer.from(secret.slice(6), 'base64') : Buffer.from(secret);
  const standard = createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64');
  return {
    'webhook-signature': `v1,${standard}`,
    'pulumi-webhook-signature': createHmac('sha256', Buffer.from(secret)).update(body).digest('hex'),
  };
}
