import { listEvents } from '../../shared/webhooks/webhook-events.ts';
import { input } from '../access/procedures/inputs.ts';
import {
  organizationMutation,
  organizationProcedure,
  router,
  stackMutation,
  stackProcedure,
} from '../access/procedures/trpc.ts';
import { webhookProcedures as calls, webhookInputs as inputs } from './webhook-procedures.ts';
import type { WebhookService } from './webhook-service.ts';

declare module '../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly webhooks: WebhookService;
  }
}

const ofStack = router({
  list: stackProcedure('admin')
    .input(input(inputs.page))
    .query(({ ctx, input: { cursor, limit, ...owner } }) => calls.list(ctx, owner, { cursor, limit })),

  get: stackProcedure('admin')
    .input(input(inputs.named))
    .query(({ ctx, input: { webhook, ...owner } }) => calls.get(ctx, owner, webhook)),

  create: stackMutation('admin', 'webhook.create')
    .input(input(inputs.created))
    .mutation(({ ctx, input: { organization, project, stack, ...made } }) =>
      calls.create(ctx, { organization, project, stack }, made),
    ),

  change: stackMutation('admin', 'webhook.change')
    .input(input(inputs.changed))
    .mutation(({ ctx, input: { organization, project, stack, webhook, ...made } }) =>
      calls.change(ctx, { organization, project, stack }, webhook, made),
    ),

  /** Also removes the log. */
  remove: stackMutation('admin', 'webhook.remove')
    .input(input(inputs.removed))
    .mutation(({ ctx, input: { revision, webhook, ...owner } }) => calls.remove(ctx, owner, { revision, webhook })),

  /** Newest first. */
  deliveries: stackProcedure('admin')
    .input(input(inputs.log))
    .query(({ ctx, input: { cursor, limit, webhook, ...owner } }) =>
      calls.deliveries(ctx, owner, { cursor, limit, webhook }),
    ),

  /** The request and the response. */
  delivery: stackProcedure('admin')
    .input(input(inputs.delivery))
    .query(({ ctx, input: { deliveryId, webhook, ...owner } }) => calls.delivery(ctx, owner, webhook, deliveryId)),

  /** Waits for the response. */
  ping: stackMutation('admin', 'webhook.ping')
    .input(input(inputs.named))
    .mutation(({ ctx, input: { webhook, ...owner } }) => calls.ping(ctx, owner, webhook)),

  /** Sends the event of an earlier delivery, and waits for the response. */
  redeliver: stackMutation('admin', 'webhook.redeliver')
    .input(input(inputs.delivery))
    .mutation(({ ctx, input: { deliveryId, webhook, ...owner } }) => calls.redeliver(ctx, owner, webhook, deliveryId)),
});

/** Inputs for the organization's webhooks have no stack names. */
export const webhooksRouter = router({
  ofStack,

  events: organizationProcedure('read').query(() => ({ items: listEvents() })),

  list: organizationProcedure('manage')
    .input(input(inputs.page))
    .query(({ ctx, input: { cursor, limit, organization } }) => calls.list(ctx, { organization }, { cursor, limit })),

  get: organizationProcedure('manage')
    .input(input(inputs.named))
    .query(({ ctx, input: { webhook, organization } }) => calls.get(ctx, { organization }, webhook)),

  create: organizationMutation('manage', 'webhook.create')
    .input(input(inputs.created))
    .mutation(({ ctx, input: { organization, ...made } }) => calls.create(ctx, { organization }, made)),

  change: organizationMutation('manage', 'webhook.change')
    .input(input(inputs.changed))
    .mutation(({ ctx, input: { organization, webhook, ...made } }) =>
      calls.change(ctx, { organization }, webhook, made),
    ),

  /** Also removes the log. */
  remove: organizationMutation('manage', 'webhook.remove')
    .input(input(inputs.removed))
    .mutation(({ ctx, input: { organization, ...seen } }) => calls.remove(ctx, { organization }, seen)),

  /** Newest first. */
  deliveries: organizationProcedure('manage')
    .input(input(inputs.log))
    .query(({ ctx, input: { cursor, limit, webhook, organization } }) =>
      calls.deliveries(ctx, { organization }, { cursor, limit, webhook }),
    ),

  /** The request and the response. */
  delivery: organizationProcedure('manage')
    .input(input(inputs.delivery))
    .query(({ ctx, input: { deliveryId, webhook, organization } }) =>
      calls.delivery(ctx, { organization }, webhook, deliveryId),
    ),

  /** Waits for the response. */
  ping: organizationMutation('manage', 'webhook.ping')
    .input(input(inputs.named))
    .mutation(({ ctx, input: { webhook, organization } }) => calls.ping(ctx, { organization }, webhook)),

  /** Sends the event of an earlier delivery, and waits for the response. */
  redeliver: organizationMutation('manage', 'webhook.redeliver')
    .input(input(inputs.delivery))
    .mutation(({ ctx, input: { deliveryId, webhook, organization } }) =>
      calls.redeliver(ctx, { organization }, webhook, deliveryId),
    ),
});
