import type { Webhook } from '../platform/app/contract.ts';

export const formats = [
  ['raw', 'JSON, signed'],
  ['slack', 'Slack'],
  ['ms_teams', 'Microsoft Teams'],
  ['github_status', 'Status of commits on GitHub'],
  ['gitlab_status', 'Status of commits on GitLab'],
] as const;

export function nameOfFormat(format: string): string {
  return formats.find(([each]) => each === format)?.[1] ?? format;
}

const groupNames: Readonly<Record<string, string>> = {
  stacks: 'all of stacks and updates',
  deployments: 'drift',
  holdfast: 'all of queues, freezes and approvals',
};

export function nameOfGroup(group: string): string {
  return groupNames[group] ?? group;
}

/** `update_succeeded` as words. */
export function nameOfEvent(event: string): string {
  return event.replaceAll('_', ' ');
}

/** What a webhook is told of, in words. */
export function describeEvents({ events, groups }: Pick<Webhook, 'events' | 'groups'>): string {
  if (events.length === 0 && groups.length === 0) return 'All events';
  return [...groups.map(nameOfGroup), ...events.map(nameOfEvent)].join(', ');
}

export const deliveryStates: Readonly<
  Record<string, { readonly word: string; readonly tone: 'success' | 'failure' | 'running' | 'neutral' }>
> = {
  delivered: { word: 'Delivered', tone: 'success' },
  failed: { word: 'Failed', tone: 'failure' },
  waiting: { word: 'Waiting', tone: 'running' },
  'left-out': { word: 'Left out', tone: 'neutral' },
};
