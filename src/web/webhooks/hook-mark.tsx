import { ManagedMark } from '../platform/app/managed-mark.tsx';
import type { WebhookOwner } from './webhook-owner.ts';

export function HookMark({ name, owner: { target } }: { readonly owner: WebhookOwner; readonly name: string }) {
  const { organization } = target;
  if (!('stack' in target)) return <ManagedMark organization={organization} kind="Webhook" object={name} />;
  const object = `${target.project}/${target.stack}/${name}`;
  return <ManagedMark organization={organization} kind="StackWebhook" object={object} />;
}
