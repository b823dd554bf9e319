import { counted } from '../../../platform/ui/counted.ts';

export const ruleLabelTexts = {
  kinds: {
    freeze: { name: 'Freeze', about: 'No updates, always or at certain times.' },
    concurrency: { name: 'Concurrent updates', about: 'Further updates wait until others end.' },
    'lock-wait': { name: 'Wait for the lock', about: 'How long an update waits for its stack.' },
    'wait-alert': { name: 'Alert on time in queue', about: 'Webhooks report updates that wait this long.' },
    supersede: { name: 'Superseding', about: 'Waiting runs of an older commit make way for runs of a newer one.' },
    'change-limit': {
      name: 'Change limit',
      about: 'An update that deletes or replaces more is stopped, and requests an approval.',
    },
    'protected-types': {
      name: 'Protected types',
      about: 'No update deletes or replaces resources of these types without an approval.',
    },
    'require-preview': {
      name: 'Preview first',
      about: 'Updates make only the changes shown in a preview of the same commit.',
    },
    consumers: {
      name: 'Outputs in use',
      about: 'Updates fail, or cause warnings, if they remove outputs that other stacks read.',
    },
    'keep-versions': {
      name: 'Versions',
      about:
        'States of other versions are deleted, except the newest version, pinned versions, and versions of stacks under a legal hold.',
    },
    'keep-events': { name: 'Events', about: 'The logs of older updates and previews are deleted.' },
    'keep-previews': { name: 'Previews', about: 'Older previews are deleted.' },
  },
  per: { user: ' for each user', project: ' for each project' },
  supersededBy: {
    branch: 'Newer commits of the same branch replace waiting runs',
    'pull-request': 'Newer commits of the same pull request replace waiting runs',
    nothing: 'Waiting runs are never superseded',
  },
  previewModes: {
    warn: 'Without a preview of the commit, users are warned',
    refuse: 'Without a preview of the commit, updates are refused',
    off: 'No preview is needed',
  },
  tokensApprove: '; tokens of teams, organizations and services may approve more',
  withoutJournal: '; updates without a journal are refused',
  ownPreview: '; the preview that up starts with does not count',
  concurrency: (most: number, per: string) => `At most ${counted(most, 'update')} at once${per}`,
  noWait: 'Updates do not wait',
  lockWait: (time: string) => `Updates wait for up to ${time}`,
  waitAlert: (time: string) => `Webhooks are notified after ${time}`,
  resources: (count: number) => counted(count, 'resource'),
  ofTheStack: (percent: string) => `${percent} % of the stack`,
  /** `limits`: empty if any number is allowed. */
  changeLimit: (limits: readonly string[]) =>
    limits.length === 0
      ? 'Any number may be deleted or replaced'
      : `At most ${limits.join(' and ')} deleted or replaced`,
  removingOutputs: (isRefused: boolean) =>
    isRefused ? 'Removing outputs is refused' : 'Removing outputs causes a warning',
  kept: (parts: readonly string[]) => `Kept: ${parts.join('; ')}`,
  keptForDays: (days: number) => `Kept for ${counted(days, 'day')}`,
  newest: (versions: number) => `the newest ${counted(versions, 'version')}`,
  lastDays: (days: number) => `all of the last ${counted(days, 'day')}`,
  daily: (days: number) => `the last of each day for ${counted(days, 'day')}`,
  monthly: (months: number) => `the last of each month for ${counted(months, 'month')}`,
  deletesNothing: 'It deletes nothing now.',
  deletes: (things: string, size: string, isComplete: boolean) =>
    `It deletes ${isComplete ? '' : 'at least '}${things} (${size}).`,
  deletedThings: {
    'keep-versions': (count: number) => `the state of ${counted(count, 'version')}`,
    'keep-events': (count: number) => `the log of ${counted(count, 'update')}`,
    'keep-previews': (count: number) => counted(count, 'preview'),
  },
  deletedItems: (count: number) => counted(count, 'item'),
  held: (stacks: number) => `${counted(stacks, 'stack')} under a legal hold ${stacks === 1 ? 'is' : 'are'} left out.`,
  decidedElsewhere: (stacks: number) => `A more specific rule decides about ${counted(stacks, 'stack')}.`,
  days: ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'],
  eachDay: 'Each day',
  dayRange: ' to ',
  windowAtTimes: (cron: string, time: string, timeZone: string) =>
    `From each time of ${cron}, for ${time} (${timeZone})`,
  windowAt: (days: string, at: string, time: string, timeZone: string) => `${days} at ${at}, for ${time} (${timeZone})`,
} as const;

export const durationTexts = {
  days: (days: number) => counted(days, 'day'),
  hours: (hours: number) => counted(hours, 'hour'),
  minutes: (minutes: number) => counted(minutes, 'minute'),
  seconds: (seconds: number) => counted(seconds, 'second'),
  hoursAndMinutes: (hours: number, minutes: number) => `${hours} h ${minutes} min`,
  minutesAndSeconds: (minutes: number, seconds: number) => `${minutes} min ${seconds} s`,
} as const;
