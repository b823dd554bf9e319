import type { ManagedObject } from '../platform/app/managed-dialog.tsx';
import type { StackRef, Webhook } from '../platform/app/procedure-types.ts';
import { apiClient, trpc } from '../platform/app/trpc.ts';

/** The owner of webhooks, and the procedures for them. */
export interface WebhookOwner {
  readonly calls: typeof trpc.webhooks.ofStack;
  /** The additional input of each procedure. */
  readonly target: StackRef;
}

export function ofStack(stack: StackRef): WebhookOwner {
  return { calls: trpc.webhooks.ofStack, target: stack };
}

/**
 * The procedures of an organization are the same as for a stack, without the names of a stack: the server creates both from the same
 * functions.
 */
export function ofOrganization(organization: string): WebhookOwner {
  return {
    calls: trpc.webhooks as unknown as WebhookOwner['calls'],
    target: { organization } as StackRef,
  };
}

/** Null: a new webhook. */
export function managedWebhook({ target }: WebhookOwner, name: string | null): ManagedObject {
  const { organization } = target;
  if (!('stack' in target)) return { organization, kind: 'Webhook', object: name };
  const object = name === null ? null : `${target.project}/${target.stack}/${name}`;
  return { organization, kind: 'StackWebhook', object };
}

export function readWebhook({ target }: WebhookOwner, webhook: string): Promise<Webhook> {
  return 'stack' in target
    ? apiClient.webhooks.ofStack.get.query({ ...target, webhook })
    : apiClient.webhooks.get.query({ ...(target as { organization: string }), webhook });
}
