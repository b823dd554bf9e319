import { byteText } from '../../platform/ui/byte-text.ts';
import { durationTexts, ruleLabelTexts } from './labels/texts.ts';

export interface FreezeWindow {
  /** Minute, hour, day, month and day of the week. */
  readonly cron: string;
  readonly timeZone: string;
  readonly minutes: number;
}

export const ruleKinds = ruleLabelTexts.kinds;
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

const per: Readonly<Record<string, string>> = ruleLabelTexts.per;
const supersededBy: Readonly<Record<string, string>> = ruleLabelTexts.supersededBy;
const previewModes: Readonly<Record<string, string>> = ruleLabelTexts.previewModes;

/** A sentence that describes the settings of a rule. */
export function describeSettings(kind: string, settings: Readonly<Record<string, unknown>>): string {
  const { approvers, by, changes, days, mode, most, ownPreview, percent, seconds, types, withoutJournal } = settings;
  const strict = `${approvers === 'tokens' ? ruleLabelTexts.tokensApprove : ''}${withoutJournal === 'refuse' ? ruleLabelTexts.withoutJournal : ''}`;
  switch (kind) {
    case 'concurrency':
      return ruleLabelTexts.concurrency(Number(most), per[String(settings['per'])] ?? '');
    case 'lock-wait':
      return Number(seconds) === 0 ? ruleLabelTexts.noWait : ruleLabelTexts.lockWait(durationText(Number(seconds)));
    case 'wait-alert':
      return ruleLabelTexts.waitAlert(durationText(Number(seconds)));
    case 'supersede':
      return supersededBy[String(by)] ?? String(by);
    case 'change-limit':
      return (
        ruleLabelTexts.changeLimit([
          ...(changes === undefined ? [] : [ruleLabelTexts.resources(Number(changes))]),
          ...(percent === undefined ? [] : [ruleLabelTexts.ofTheStack(String(percent))]),
        ]) + strict
      );
    case 'protected-types':
      return (Array.isArray(types) ? types.map(String).join(', ') : '') + strict;
    case 'require-preview':
      return (
        (previewModes[String(mode)] ?? String(mode)) +
        (ownPreview === 'ignored' ? ruleLabelTexts.ownPreview : '') +
        strict
      );
    case 'consumers':
      return ruleLabelTexts.removingOutputs(mode === 'refuse');
    case 'keep-versions':
      return ruleLabelTexts.kept(keptVersions(settings));
    case 'keep-events':
    case 'keep-previews':
      return ruleLabelTexts.keptForDays(Number(days));
    default:
      return JSON.stringify(settings);
  }
}

export function isOfRetention(kind: RuleKind): boolean {
  return (retentionKinds as readonly RuleKind[]).includes(kind);
}

/** The kind under which a configuration declares the rule. */
export function declaredKind(kind: string): 'UpdateRule' | 'RetentionRule' {
  return (retentionKinds as readonly string[]).includes(kind) ? 'RetentionRule' : 'UpdateRule';
}

const deletedThings: Readonly<Record<string, (count: number) => string>> = ruleLabelTexts.deletedThings;

/** A sentence about what a rule would delete. */
export function describeEstimate(estimate: {
  readonly kind: string;
  readonly count: number;
  readonly bytes: number;
  readonly heldCount: number;
  readonly otherCount: number;
  readonly isComplete: boolean;
}): string {
  const { bytes, count, heldCount, isComplete, kind, otherCount } = estimate;
  const things = (deletedThings[kind] ?? ruleLabelTexts.deletedItems)(count);
  const parts = [
    count === 0 ? ruleLabelTexts.deletesNothing : ruleLabelTexts.deletes(things, byteText(bytes), isComplete),
    heldCount === 0 ? '' : ruleLabelTexts.held(heldCount),
    otherCount === 0 ? '' : ruleLabelTexts.decidedElsewhere(otherCount),
  ];
  return parts.filter(Boolean).join(' ');
}

function keptVersions({ daily, days, monthly, newest }: Readonly<Record<string, unknown>>): string[] {
  return [
    newest === undefined ? null : ruleLabelTexts.newest(Number(newest)),
    days === undefined ? null : ruleLabelTexts.lastDays(Number(days)),
    daily === undefined ? null : ruleLabelTexts.daily(Number(daily)),
    monthly === undefined ? null : ruleLabelTexts.monthly(Number(monthly)),
  ].filter((part) => part !== null);
}

export function durationText(seconds: number): string {
  for (const [text, size] of [
    [durationTexts.days, 86_400],
    [durationTexts.hours, 3_600],
    [durationTexts.minutes, 60],
  ] as const)
    if (seconds >= size && seconds % size === 0) return text(seconds / size);
  if (seconds > 3_600)
    return durationTexts.hoursAndMinutes(Math.floor(seconds / 3_600), Math.round((seconds % 3_600) / 60));
  return seconds > 60
    ? durationTexts.minutesAndSeconds(Math.floor(seconds / 60), seconds % 60)
    : durationTexts.seconds(seconds);
}

/** Describes a simple expression as text. */
export function describeWindow({ cron, minutes, timeZone }: FreezeWindow): string {
  const lasts = durationText(minutes * 60);
  const simple = /^(\d{1,2}) (\d{1,2}) \* \* (\*|[0-7](?:[-,][0-7])*)$/.exec(cron);
  if (!simple) return ruleLabelTexts.windowAtTimes(cron, lasts, timeZone);
  const [, minute = '', hour = '', weekdays = '*'] = simple;
  const on =
    weekdays === '*'
      ? ruleLabelTexts.eachDay
      : weekdays
          .replaceAll(/\d/g, (day) => ruleLabelTexts.days[Number(day) % 7] ?? day)
          .replaceAll('-', ruleLabelTexts.dayRange)
          .replaceAll(',', ', ');
  return ruleLabelTexts.windowAt(on, `${hour.padStart(2, '0')}:${minute.padStart(2, '0')}`, lasts, timeZone);
}
