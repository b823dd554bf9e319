import type { StackRef, Webhook } from '../platform/app/contract.ts';
import { apiClient, trpc } from '../platform/app/trpc.ts';

/** Whose webhooks, and the procedures for them. */
export interface WebhookOwner {
  readonly calls: typeof trpc.webhooks.ofStack;
  /** What each procedure takes besides. */
  readonly place: StackRef;
}

export function ofStack(stack: StackRef): WebhookOwner {
  return { calls: trpc.webhooks.ofStack, place: stack };
}

/** The procedures of an organization are those of a stack without its names: the server makes both from the same functions. */
export function ofOrganization(organization: string): WebhookOwner {
  return {
    calls: trpc.webhooks as unknown as WebhookOwner['calls'],
    place: { organization } as StackRef,
  };
}

/** What a webhook is now. */
export function readWebhook({ place }: WebhookOwner, webhook: string): Promise<Webhook> {
  return 'stack' in place
    ? apiClient.webhooks.ofStack.get.query({ ...place, webhook })
    : apiClient.webhooks.get.query({ ...(place as { organization: string }), webhook });
}
