import { type Static, Type } from 'typebox';
import type { EventFacts } from '../../shared/webhooks/event-facts.ts';
import { payloadOf } from '../../shared/webhooks/payloads.ts';
import { decodeCursor, defaultPage, encodeCursor, Name, page, Revision, text } from '../access/procedures/inputs.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import { seenByField } from '../platform/edits/revisions.ts';
import type { Caller } from '../platform/http/request.ts';
import { removedSecret, revisionOfWebhook } from './webhook-edit.ts';
import type { DeliveryRow, LoggedDeliveryRow, WebhookOwner, WebhookRow, WebhookService } from './webhook-service.ts';

export interface Services {
  readonly webhooks: WebhookService;
}

const Names = Type.Array(text(100), { maxItems: 200 });
const After = Type.Tuple([text(200)]);
const Before = Type.Tuple([Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })]);

/** A missing secret keeps the current one, null removes it; it is never shown. */
const definition = {
  displayName: text(200),
  url: text(4_000),
  format: text(40),
  isActive: Type.Boolean(),
  /** Without events and groups: all events. */
  events: Names,
  groups: Names,
  secret: Type.Optional(Type.Union([Type.String({ minLength: 1, maxLength: 1_000 }), Type.Null()])),
};
const named = { webhook: Name };

/** Inputs without the owner of the webhooks. */
export const webhookInputs = {
  page: Type.Object(page),
  named: Type.Object(named),
  created: Type.Object(definition),
  removed: Type.Object({ ...named, revision: Revision }),
  changed: Type.Object({ ...named, revision: Revision, ...definition }),
  log: Type.Object({ ...named, ...page }),
  delivery: Type.Object({ ...named, deliveryId: text(100) }),
};
type Created = Static<typeof webhookInputs.created>;
type Changed = Omit<Static<typeof webhookInputs.changed>, 'webhook'>;

interface Paged {
  readonly cursor?: string | null | undefined;
  readonly limit?: number | undefined;
}

interface Calling {
  readonly services: Services;
}

interface Changing extends Calling {
  readonly caller: Caller;
  readonly audit: AuditTrail;
}

/** Shared by the procedures for organizations and for stacks. */
export const webhookProcedures = {
  list: async ({ services }: Calling, owner: WebhookOwner, { cursor, limit = defaultPage }: Paged) => {
    const [after] = decodeCursor(cursor, After) ?? [null];
    const { isCut, rows } = await services.webhooks.listPage(owner, after, limit);
    const last = rows.at(-1);
    return { items: rows.map(webhookView), next: isCut && last ? encodeCursor([last.displayName]) : null };
  },

  get: async ({ services }: Calling, owner: WebhookOwner, webhook: string) =>
    webhookView(await services.webhooks.get(owner, webhook)),

  create: async ({ audit, caller, services }: Changing, owner: WebhookOwner, made: Created) =>
    webhookView(await services.webhooks.create(caller, owner, requestOf(made), audit)),

  change: async ({ audit, caller, services }: Changing, owner: WebhookOwner, webhook: string, made: Changed) => {
    const seen = seenByField(made.revision);
    return webhookView(await services.webhooks.update(caller, owner, webhook, requestOf(made), audit, seen));
  },

  remove: (
    { audit, caller, services }: Changing,
    owner: WebhookOwner,
    { revision, webhook }: { readonly webhook: string; readonly revision?: string | undefined },
  ) => services.webhooks.remove(caller, owner, webhook, audit, seenByField(revision)),

  deliveries: async (
    { services }: Calling,
    owner: WebhookOwner,
    { cursor, limit = defaultPage, webhook }: Paged & { readonly webhook: string },
  ) => {
    const [before] = decodeCursor(cursor, Before) ?? [null];
    const { isCut, rows } = await services.webhooks.listLog(owner, webhook, before, limit);
    const last = rows.at(-1);
    return { items: rows.map(loggedDelivery), next: isCut && last ? encodeCursor([last.number]) : null };
  },

  delivery: async ({ services }: Calling, owner: WebhookOwner, webhook: string, deliveryId: string) => {
    const { delivery, format } = await services.webhooks.getDelivery(owner, webhook, deliveryId);
    return deliveryView(format, delivery);
  },

  ping: async ({ audit, caller, services }: Changing, owner: WebhookOwner, webhook: string) => {
    const { delivery, format } = await services.webhooks.ping(caller, owner, webhook, audit);
    return deliveryView(format, delivery);
  },

  redeliver: async (
    { audit, caller, services }: Changing,
    owner: WebhookOwner,
    webhook: string,
    deliveryId: string,
  ) => {
    const { delivery, format } = await services.webhooks.redeliver(caller, owner, webhook, deliveryId, audit);
    return deliveryView(format, delivery);
  },
};

function requestOf({ displayName, events, format, groups, isActive, secret, url }: Created) {
  return {
    ...{ displayName, format, groups },
    payloadUrl: url,
    active: isActive,
    filters: events,
    ...(secret === undefined ? {} : { secret: secret ?? removedSecret }),
  };
}

function webhookView(row: WebhookRow) {
  const { displayName, events, format, groups, isActive, name, encrypted, url } = row;
  const revision = revisionOfWebhook(row);
  return { name, displayName, url, format, isActive, events, groups, hasSecret: encrypted !== null, revision };
}

function loggedDelivery({ at, number: _number, ...row }: LoggedDeliveryRow) {
  return { ...row, at: at.toISOString() };
}

function deliveryView(format: string, row: DeliveryRow) {
  const { durationMs, event, id, requestHeaders, requestUrl, responseBody, responseHeaders, responseStatus, state } =
    row;
  return {
    ...{ id, event, state, durationMs, requestUrl, requestHeaders, responseStatus, responseHeaders },
    at: row.at.toISOString(),
    /** Null: the payload has not been created yet. */
    payload: row.facts === null ? null : payloadOf(format, row.eventId, JSON.parse(row.facts) as EventFacts),
    /** The beginning of the body; without a response, the reason. */
    responseBody,
  };
}
