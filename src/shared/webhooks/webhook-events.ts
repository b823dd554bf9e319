interface WebhookEvent {
  /** Webhooks may select the event by this group. */
  readonly group: string;
  /** Follows the name of the stack. */
  readonly text: string;
  /** Pulumi Cloud's name, sent as a header. Defaults to the name of the event. */
  readonly kind?: string;
}

const stack = { group: 'stacks', kind: 'stack' } as const;
const update = { group: 'stacks', kind: 'stack_update' } as const;
const ours = { group: 'holdfast' } as const;
const preview = { group: 'stacks', kind: 'stack_preview' } as const;

/**
 * To add an event, add a line and call `recordWebhookEvent` in the transaction of the change. Events of group `holdfast` are our own: the
 * CLI's commands know no filter for them, but the API and webhooks without filters do. Triggers record the events of updates, stacks,
 * freezes, approvals and change limits.
 */
export const webhookEvents = {
  stack_created: { ...stack, text: 'was created' },
  stack_deleted: { ...stack, text: 'was deleted' },
  update_succeeded: { ...update, text: 'update succeeded' },
  update_failed: { ...update, text: 'update failed' },
  preview_succeeded: { ...preview, text: 'preview succeeded' },
  preview_failed: { ...preview, text: 'preview failed' },
  destroy_succeeded: { ...update, text: 'destroy succeeded' },
  destroy_failed: { ...update, text: 'destroy failed' },
  refresh_succeeded: { ...update, text: 'refresh succeeded' },
  refresh_failed: { ...update, text: 'refresh failed' },
  import_succeeded: { ...update, text: 'import succeeded' },
  drift_detected: { group: 'deployments', text: 'has drifted' },
  update_started: { ...ours, kind: 'stack_update', text: 'update started' },
  preview_started: { ...ours, kind: 'stack_preview', text: 'preview started' },
  update_waiting: { ...ours, kind: 'stack_update', text: 'an update has waited for long' },
  update_frozen: { ...ours, kind: 'stack_update', text: 'an update was deferred by a freeze' },
  update_stopped: { ...ours, kind: 'stack_update', text: 'update was stopped' },
  outputs_removed: { ...ours, text: 'outputs that other stacks read are removed' },
  approval_asked: { ...ours, text: 'an approval was requested' },
  approval_given: { ...ours, text: 'a commit was approved' },
  stack_restored: { ...ours, text: 'was restored after its deletion' },
  freeze_set: { ...ours, text: 'updates were frozen' },
  freeze_lifted: { ...ours, text: 'updates were thawed' },
  ping: { ...ours, text: 'ping' },
} as const satisfies Readonly<Record<string, WebhookEvent>>;

export type WebhookEventName = keyof typeof webhookEvents;

export function listEvents(): { readonly name: string; readonly group: string; readonly text: string }[] {
  return Object.entries(webhookEvents)
    .filter(([name]) => name !== 'ping')
    .map(([name, { group, text }]) => ({ name, group, text }));
}

/** A later release may have recorded other events. */
export function describeEvent(name: string): WebhookEvent {
  return Object.hasOwn(webhookEvents, name)
    ? webhookEvents[name as WebhookEventName]
    : { group: 'holdfast', text: name.replaceAll('_', ' ') };
}

/** Pulumi Cloud's groups and our own. Some have no events here. */
export const eventGroups = [
  'stacks',
  'deployments',
  'policies',
  'environments',
  'change_requests',
  'holdfast',
] as const;
/** The Pulumi CLI offers these events, but they do not occur here. */
const othersEvents =
  /^(import_failed|deployment_\w+|drift_(detection|remediation)_(succeeded|failed)|policy_violation_(mandatory|advisory)|(imported_)?environment_\w+|change_request_\w+)$/;

export function isEventGroup(name: string): boolean {
  return (eventGroups as readonly string[]).includes(name);
}

export function isEventName(name: string): boolean {
  return Object.hasOwn(webhookEvents, name) || othersEvents.test(name);
}
