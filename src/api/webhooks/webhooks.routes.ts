import { Type } from 'typebox';
import type { EventFacts } from '../../shared/webhooks/event-facts.ts';
import { payloadOf } from '../../shared/webhooks/payloads.ts';
import { seenByHeader, tagOf } from '../platform/edits/revisions.ts';
import { apiToken, stackPath } from '../platform/http/paths.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { OrganizationParams, StackParams } from '../platform/protocol/core.ts';
import { IfMatchHeaders } from '../platform/protocol/edits.ts';
import { revisionOfWebhook } from './webhook-edit.ts';
import type { DeliveryRow, WebhookOwner, WebhookRow, WebhookService } from './webhook-service.ts';
import {
  ListDeliveriesResponse,
  ListStackWebhooksResponse,
  ListWebhooksResponse,
  OrganizationDeliveryParams,
  OrganizationHookParams,
  StackDeliveryParams,
  StackHookParams,
  StackHooksQuery,
  WebhookDeliveryResponse,
  WebhookRequest,
  WebhookResponse,
} from './webhooks.schemas.ts';

export interface Services {
  readonly webhooks: WebhookService;
}

const tags = ['webhooks'];

/** Organizations' and stacks' webhooks are alike. */
const webhookRoutes = [
  {
    path: '/api/orgs/:organization/hooks',
    of: 'an organization',
    access: { kind: 'organization', permission: 'manage' },
    params: OrganizationParams,
    hookParams: OrganizationHookParams,
    deliveryParams: OrganizationDeliveryParams,
  },
  {
    path: `${stackPath}/hooks`,
    of: 'a stack',
    access: { kind: 'stack', permission: 'admin' },
    params: StackParams,
    hookParams: StackHookParams,
    deliveryParams: StackDeliveryParams,
  },
] as const;
type WebhookRoutes = (typeof webhookRoutes)[number];

/** `pulumi org webhook` and `pulumi stack webhook` call these routes. */
export function registerWebhookRoutes(app: RouteScope, services: Services): void {
  for (const routes of webhookRoutes) {
    collection(app, services, routes);
    single(app, services, routes);
    deliveries(app, services, routes);
  }
  ofAllStacks(app, services);
}

function ofAllStacks(app: RouteScope, { webhooks }: Services): void {
  app.get(
    '/api/orgs/:organization/stack-hooks',
    {
      config: { access: { kind: 'organization', permission: 'manage' }, rate: 'held' },
      schema: {
        tags,
        summary: 'List the webhooks of all stacks',
        security: apiToken,
        params: OrganizationParams,
        querystring: StackHooksQuery,
        response: { 200: ListStackWebhooksResponse },
      },
    },
    async ({ caller, params: { organization }, query }) => {
      const page = await webhooks.listOfStacks(caller, organization, query.continuationToken);
      return {
        ...page,
        hooks: page.hooks.map((row) => toResponse({ organization, project: row.project, stack: row.stack }, row)),
      };
    },
  );
}

function collection(app: RouteScope, { webhooks }: Services, { access, of, params, path }: WebhookRoutes): void {
  app.get(
    path,
    {
      config: { access, rate: 'held' },
      schema: {
        tags,
        summary: `List the webhooks of ${of}`,
        security: apiToken,
        params,
        response: { 200: ListWebhooksResponse },
      },
    },
    async (request) => {
      const owner = ownerOf(request.params);
      return (await webhooks.list(owner)).map((webhook) => toResponse(owner, webhook));
    },
  );
  app.post(
    path,
    {
      config: { access, rate: 'held', audit: 'webhook.create', described: { errorStatuses: [409] } },
      schema: {
        tags,
        summary: `Create a webhook of ${of}`,
        security: apiToken,
        params,
        body: WebhookRequest,
        response: { 200: WebhookResponse },
      },
    },
    async (request) => {
      const owner = ownerOf(request.params);
      return toResponse(owner, await webhooks.create(request.caller, owner, request.body, request.audit));
    },
  );
}

function single(
  app: RouteScope,
  { webhooks }: Services,
  { access, hookParams: params, of, path }: WebhookRoutes,
): void {
  app.get(
    `${path}/:hook`,
    {
      config: { access, rate: 'held' },
      schema: {
        tags,
        summary: `Get a webhook of ${of}`,
        security: apiToken,
        params,
        response: { 200: WebhookResponse },
      },
    },
    async (request, reply) => {
      const owner = ownerOf(request.params);
      const webhook = await webhooks.get(owner, request.params.hook);
      void reply.header('etag', tagOf(revisionOfWebhook(webhook)));
      return toResponse(owner, webhook);
    },
  );
  app.patch(
    `${path}/:hook`,
    {
      config: { access, rate: 'held', audit: 'webhook.change', described: { errorStatuses: [409, 412] } },
      schema: {
        tags,
        headers: IfMatchHeaders,
        summary: `Change a webhook of ${of}`,
        security: apiToken,
        params,
        body: WebhookRequest,
        response: { 200: WebhookResponse },
      },
    },
    async (request, reply) => {
      const owner = ownerOf(request.params);
      const { audit, body, caller, headers, params: named } = request;
      const seen = seenByHeader(headers['if-match']);
      const webhook = await webhooks.update(caller, owner, named.hook, body, audit, seen);
      void reply.header('etag', tagOf(revisionOfWebhook(webhook)));
      return toResponse(owner, webhook);
    },
  );
  app.delete(
    `${path}/:hook`,
    {
      config: { access, rate: 'held', audit: 'webhook.remove', described: { errorStatuses: [412] } },
      schema: {
        tags,
        headers: IfMatchHeaders,
        summary: `Remove a webhook of ${of}, with its log`,
        security: apiToken,
        params,
        response: { 204: Type.Null() },
      },
    },
    async (request, reply) => {
      const { audit, caller, headers, params: named } = request;
      const seen = seenByHeader(headers['if-match']);
      await webhooks.remove(caller, ownerOf(request.params), named.hook, audit, seen);
      return reply.code(204).send(null);
    },
  );
}

function deliveries(app: RouteScope, { webhooks }: Services, routes: WebhookRoutes): void {
  const { access, deliveryParams, hookParams, of, path } = routes;
  app.get(
    `${path}/:hook/deliveries`,
    {
      config: { access, rate: 'held' },
      schema: {
        tags,
        summary: `List the newest deliveries to a webhook of ${of}`,
        security: apiToken,
        params: hookParams,
        response: { 200: ListDeliveriesResponse },
      },
    },
    async ({ params }) => {
      const { deliveries: rows, format } = await webhooks.listDeliveries(ownerOf(params), params.hook);
      return rows.map((row) => toDelivery(format, row));
    },
  );
  app.post(
    `${path}/:hook/ping`,
    {
      config: { access, rate: 'held', audit: 'webhook.ping' },
      schema: {
        tags,
        summary: `Send a test event to a webhook of ${of}, and wait for the response`,
        security: apiToken,
        params: hookParams,
        response: { 200: WebhookDeliveryResponse },
      },
    },
    async ({ audit, caller, params }) => {
      const { delivery, format } = await webhooks.ping(caller, ownerOf(params), params.hook, audit);
      return toDelivery(format, delivery);
    },
  );
  app.post(
    `${path}/:hook/deliveries/:deliveryId/redeliver`,
    {
      config: { access, rate: 'held', audit: 'webhook.redeliver' },
      schema: {
        tags,
        summary: `Deliver an event to a webhook of ${of} again, and wait for the response`,
        security: apiToken,
        params: deliveryParams,
        response: { 200: WebhookDeliveryResponse },
      },
    },
    async ({ audit, caller, params }) => {
      const owner = ownerOf(params);
      const { delivery, format } = await webhooks.redeliver(caller, owner, params.hook, params.deliveryId, audit);
      return toDelivery(format, delivery);
    },
  );
}

function ownerOf(params: { organization: string; project?: string; stack?: string }): WebhookOwner {
  const { organization, project, stack } = params;
  return project === undefined || stack === undefined ? { organization } : { organization, project, stack };
}

function toResponse(owner: WebhookOwner, webhook: WebhookRow) {
  const { displayName, events, format, groups, isActive, name, encrypted, url } = webhook;
  return {
    organizationName: owner.organization,
    ...(owner.stack === undefined ? {} : { projectName: owner.project, stackName: owner.stack }),
    ...{ name, displayName, payloadUrl: url, active: isActive, format, filters: events, groups },
    hasSecret: encrypted !== null,
    secretCiphertext: '',
  };
}

function toDelivery(format: string, row: DeliveryRow) {
  return {
    id: row.id,
    kind: row.event,
    payload: row.facts === null ? '' : payloadOf(format, row.eventId, JSON.parse(row.facts) as EventFacts),
    timestamp: Math.floor(row.at.getTime() / 1000),
    duration: row.durationMs ?? 0,
    requestUrl: row.requestUrl ?? '',
    requestHeaders: row.requestHeaders ?? '',
    responseCode: row.responseStatus ?? 0,
    responseHeaders: row.responseHeaders ?? '',
    responseBody: row.responseBody ?? '',
    state: row.state,
  };
}
