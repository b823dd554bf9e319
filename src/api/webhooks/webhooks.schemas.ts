import { type Static, Type } from 'typebox';
import { component } from '../platform/protocol/components.ts';
import { Maybe } from '../platform/protocol/core.ts';

const Names = Maybe(Type.Array(Type.String(), { maxItems: 200 }));

/** A webhook as the CLI sends it (apitype.Webhook); missing members stay unchanged. */
export const WebhookRequest = component(
  'WebhookRequest',
  Type.Object({
    name: Maybe(Type.String({ description: 'Id in paths, for a new webhook; default: a random one' })),
    displayName: Maybe(Type.String()),
    payloadUrl: Maybe(Type.String()),
    active: Maybe(Type.Boolean()),
    format: Maybe(
      Type.String({ description: 'raw (default), slack, ms_teams; our extension: github_status, gitlab_status' }),
    ),
    filters: Names,
    groups: Names,
    secret: Maybe(
      Type.String({ description: 'Missing or empty: as it is. `__remove-secret` removes it. Never returned.' }),
    ),
  }),
  { displayName: 'Deployments', payloadUrl: 'https://hooks.example.com/pulumi', filters: ['update_succeeded'] },
);
export type WebhookRequest = Static<typeof WebhookRequest>;

export const WebhookResponse = component(
  'WebhookResponse',
  Type.Object({
    organizationName: Type.String(),
    projectName: Type.Optional(Type.String()),
    stackName: Type.Optional(Type.String()),
    name: Type.String(),
    displayName: Type.String(),
    payloadUrl: Type.String(),
    active: Type.Boolean(),
    format: Type.String(),
    filters: Type.Array(Type.String()),
    groups: Type.Array(Type.String()),
    hasSecret: Type.Boolean(),
    secretCiphertext: Type.String({ description: 'Always empty' }),
  }),
);

export const ListWebhooksResponse = component('ListWebhooksResponse', Type.Array(WebhookResponse));

export const StackHooksQuery = Type.Object({ continuationToken: Type.Optional(Type.String()) });
export const ListStackWebhooksResponse = component(
  'ListStackWebhooksResponse',
  Type.Object({ hooks: Type.Array(WebhookResponse), continuationToken: Type.Optional(Type.String()) }),
);

/** An event with the result of its last attempt. */
export const WebhookDeliveryResponse = component(
  'WebhookDeliveryResponse',
  Type.Object({
    id: Type.String(),
    kind: Type.String({ description: 'Name of the event' }),
    payload: Type.String(),
    timestamp: Type.Integer({ description: 'Seconds since the epoch' }),
    duration: Type.Integer({ description: 'Milliseconds' }),
    requestUrl: Type.String(),
    requestHeaders: Type.String(),
    responseCode: Type.Integer({ description: '0: there was no response' }),
    responseHeaders: Type.String(),
    responseBody: Type.String({ description: 'Its beginning, or why there was no response' }),
    state: Type.String({ description: 'Our extension: waiting, delivered, failed or left-out' }),
  }),
);

export const ListDeliveriesResponse = component('ListDeliveriesResponse', Type.Array(WebhookDeliveryResponse));

const hook = { hook: Type.String() };
const delivery = { ...hook, deliveryId: Type.String() };
const stack = { organization: Type.String(), project: Type.String(), stack: Type.String() };
export const OrganizationHookParams = Type.Object({ organization: Type.String(), ...hook });
export const OrganizationDeliveryParams = Type.Object({ organization: Type.String(), ...delivery });
export const StackHookParams = Type.Object({ ...stack, ...hook });
export const StackDeliveryParams = Type.Object({ ...stack, ...delivery });
