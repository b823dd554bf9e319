import { byteText } from '../../platform/ui/byte-text.ts';

/** When a freeze is in force. */
export interface FreezeWindow {
  /** Minute, hour, day, month and day of the week. */
  readonly cron: string;
  readonly timeZone: string;
  readonly minutes: number;
}

/** The name and the purpose of each kind of rule. */
export const ruleKinds = {
  freeze: { name: 'Freeze', about: 'No updates, always or at certain times.' },
  concurrency: { name: 'Concurrent updates', about: 'Further updates wait until others end.' },
  'lock-wait': { name: 'Time in queue', about: 'How long an update waits for its stack.' },
  'wait-alert': { name: 'Alert on time in queue', about: 'Webhooks report updates that wait this long.' },
  supersede: { name: 'Superseding', about: 'Waiting runs of an older commit make way for runs of a newer one.' },
  'change-limit': {
    name: 'Change limit',
    about: 'An update that deletes or replaces more is stopped, and requests an approval.',
  },
  'protected-types': {
    name: 'Protected types',
    about: 'No update deletes or replaces such resources without an approval.',
  },
  'require-preview': {
    name: 'Preview first',
    about: 'Updates make only the changes shown in a preview of the same commit.',
  },
  consumers: {
    name: 'Outputs in use',
    about: 'Updates that remove outputs read by other stacks are warned or refused.',
  },
  'keep-versions': {
    name: 'Versions',
    about:
      'States of other versions are deleted, except the newest one, pinned ones, and those of stacks under a legal hold.',
  },
  'keep-events': { name: 'Events', about: 'The logs of older updates and previews are deleted.' },
  'keep-previews': { name: 'Previews', about: 'Older previews are deleted.' },
} as const;
export type RuleKind = keyof typeof ruleKinds;

export const queueKinds = [
  'concurrency',
  'lock-wait',
  'wait-alert',
  'supersede',
] as const satisfies readonly RuleKind[];
export const limitedKinds = [
  'change-limit',
  'protected-types',
  'require-preview',
  'consumers',
] as const satisfies readonly RuleKind[];

export const retentionKinds = ['keep-versions', 'keep-events', 'keep-previews'] as const satisfies readonly RuleKind[];

export function nameOfKind(kind: string): string {
  return Object.hasOwn(ruleKinds, kind) ? ruleKinds[kind as RuleKind].name : kind;
}

const per: Readonly<Record<string, string>> = { user: ' for each user', project: ' for each project' };
const supersededBy: Readonly<Record<string, string>> = {
  branch: 'Newer commits of the same branch replace waiting runs',
  'pull-request': 'Newer commits of the same pull request replace waiting runs',
  nothing: 'Waiting runs are never superseded',
};
const previewModes: Readonly<Record<string, string>> = {
  warn: 'Without a preview of the commit, users are warned',
  refuse: 'Without a preview of the commit, updates are refused',
  off: 'No preview is needed',
};

/** A sentence that describes the settings of a rule. */
export function describeSettings(kind: string, settings: Readonly<Record<string, unknown>>): string {
  const { approvers, by, changes, days, mode, most, ownPreview, percent, seconds, types, withoutJournal } = settings;
  const approving = approvers === 'tokens' ? '; tokens of teams, organizations and services may approve more' : '';
  const strict = `${approving}${withoutJournal === 'refuse' ? '; updates without a journal are refused' : ''}`;
  switch (kind) {
    case 'concurrency':
      return `At most ${count(Number(most), 'update')} at once${per[String(settings['per'])] ?? ''}`;
    case 'lock-wait':
      return Number(seconds) === 0 ? 'Updates do not wait' : `Updates wait for up to ${durationText(Number(seconds))}`;
    case 'wait-alert':
      return `Webhooks are notified after ${durationText(Number(seconds))}`;
    case 'supersede':
      return supersededBy[String(by)] ?? String(by);
    case 'change-limit': {
      const limits = [
        changes === undefined ? null : count(Number(changes), 'resource'),
        percent === undefined ? null : `${String(percent)} % of the stack`,
      ].filter(Boolean);
      return limits.length === 0
        ? `Any number may be deleted or replaced${strict}`
        : `At most ${limits.join(' and ')} deleted or replaced${strict}`;
    }
    case 'protected-types':
      return `${Array.isArray(types) ? types.map(String).join(', ') : ''}${strict}`;
    case 'require-preview':
      return `${previewModes[String(mode)] ?? String(mode)}${ownPreview === 'ignored' ? '; the preview that up starts with does not count' : ''}${strict}`;
    case 'consumers':
      return mode === 'refuse' ? 'Removing outputs is refused' : 'Removing outputs causes a warning';
    case 'keep-versions':
      return `Kept: ${keptVersions(settings).join('; ')}`;
    case 'keep-events':
    case 'keep-previews':
      return `Kept for ${count(Number(days), 'day')}`;
    default:
      return JSON.stringify(settings);
  }
}

export function isOfRetention(kind: RuleKind): boolean {
  return (retentionKinds as readonly RuleKind[]).includes(kind);
}

/** The kind under which a configuration declares such a rule. */
export function declaredKind(kind: string): 'UpdateRule' | 'RetentionRule' {
  return (retentionKinds as readonly string[]).includes(kind) ? 'RetentionRule' : 'UpdateRule';
}

const deletedThings: Readonly<Record<string, string>> = {
  'keep-versions': 'the state of # version',
  'keep-events': 'the log of # update',
  'keep-previews': '# preview',
};

/** A sentence about what a rule would delete. */
export function describeEstimate(estimate: {
  readonly kind: string;
  readonly count: number;
  readonly bytes: number;
  readonly heldCount: number;
  readonly otherCount: number;
  readonly isComplete: boolean;
}): string {
  const { bytes, count: number, heldCount, isComplete, kind, otherCount } = estimate;
  const things = (deletedThings[kind] ?? '# item').replace('#', number.toLocaleString('en'));
  const parts = [
    number === 0
      ? 'It deletes nothing now.'
      : `It deletes ${isComplete ? '' : 'at least '}${things}${number === 1 ? '' : 's'} (${byteText(bytes)}).`,
    heldCount === 0
      ? ''
      : `${count(heldCount, 'stack')} under a legal hold ${heldCount === 1 ? 'is' : 'are'} left out.`,
    otherCount === 0 ? '' : `A more specific rule decides about ${count(otherCount, 'stack')}.`,
  ];
  return parts.filter(Boolean).join(' ');
}

function keptVersions({ daily, days, monthly, newest }: Readonly<Record<string, unknown>>): string[] {
  return [
    newest === undefined ? null : `the newest ${count(Number(newest), 'version')}`,
    days === undefined ? null : `all of the last ${count(Number(days), 'day')}`,
    daily === undefined ? null : `the last of each day for ${count(Number(daily), 'day')}`,
    monthly === undefined ? null : `the last of each month for ${count(Number(monthly), 'month')}`,
  ].filter((part) => part !== null);
}

/** A human-readable duration, from seconds. */
export function durationText(seconds: number): string {
  for (const [unit, size] of [
    ['day', 86_400],
    ['hour', 3_600],
    ['minute', 60],
  ] as const)
    if (seconds >= size && seconds % size === 0) return count(seconds / size, unit);
  if (seconds > 3_600) return `${Math.floor(seconds / 3_600)} h ${Math.round((seconds % 3_600) / 60)} min`;
  return seconds > 60 ? `${Math.floor(seconds / 60)} min ${seconds % 60} s` : count(seconds, 'second');
}

function count(number: number, what: string): string {
  return `${number.toLocaleString('en')} ${what}${number === 1 ? '' : 's'}`;
}

const days = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];

/** The start of a window, as text if the expression is simple, and its duration. */
export function describeWindow({ cron, minutes, timeZone }: FreezeWindow): string {
  const lasts = `for ${durationText(minutes * 60)}`;
  const simple = /^(\d{1,2}) (\d{1,2}) \* \* (\*|[0-7](?:[-,][0-7])*)$/.exec(cron);
  if (!simple) return `From each time of ${cron}, ${lasts} (${timeZone})`;
  const [, minute = '', hour = '', weekdays = '*'] = simple;
  const at = `${hour.padStart(2, '0')}:${minute.padStart(2, '0')}`;
  const on =
    weekdays === '*'
      ? 'Each day'
      : weekdays
          .replaceAll(/\d/g, (day) => days[Number(day) % 7] ?? day)
          .replaceAll('-', ' to ')
          .replaceAll(',', ', ');
  return `${on} at ${at}, ${lasts} (${timeZone})`;
}
