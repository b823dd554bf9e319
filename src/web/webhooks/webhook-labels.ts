import type { Delivery, Webhook } from '../platform/app/contract.ts';

export const formats = [
  ['raw', 'JSON, signed'],
  ['slack', 'Slack'],
  ['ms_teams', 'Microsoft Teams'],
  ['github_status', 'GitHub commit status'],
  ['gitlab_status', 'GitLab commit status'],
] as const;

export function nameOfFormat(format: string): string {
  return formats.find(([each]) => each === format)?.[1] ?? format;
}

export const groupNames: Readonly<Record<string, string>> = {
  stacks: 'all stack and update events',
  deployments: 'drift',
  policies: 'policies (no events yet)',
  environments: 'environments (no events yet)',
  change_requests: 'change requests (no events yet)',
  holdfast: 'all queue, freeze and approval events',
};

export function nameOfGroup(group: string): string {
  return groupNames[group] ?? group;
}

/** The label of an event such as `update_succeeded`. */
export function nameOfEvent(event: string): string {
  return event.replaceAll('_', ' ');
}

/** A description of a webhook's events. */
export function describeEvents({ events, groups }: Pick<Webhook, 'events' | 'groups'>): string {
  if (events.length === 0 && groups.length === 0) return 'All events';
  return [...groups.map(nameOfGroup), ...events.map(nameOfEvent)].join(', ');
}

export const deliveryStates: Readonly<
  Record<Delivery['state'], { readonly word: string; readonly tone: 'success' | 'failure' | 'running' | 'neutral' }>
> = {
  delivered: { word: 'Delivered', tone: 'success' },
  failed: { word: 'Failed', tone: 'failure' },
  waiting: { word: 'Waiting', tone: 'running' },
  'left-out': { word: 'Skipped', tone: 'neutral' },
};
