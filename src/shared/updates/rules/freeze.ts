import { DeferredError } from '../deferred.ts';
import { endOfWindow, nextWindows, type WindowTimes } from './freeze-windows.ts';
import type { RuleSettings } from './rule-kinds.ts';
import type { StackWithRules } from './update-rule-repository.ts';
import { type ApplicableRule, describeScope, type UpdateRules } from './update-rules.ts';

export interface Freeze {
  readonly rule: ApplicableRule<'freeze'>;
  /** Null if the freeze lasts until thawed. */
  readonly until: Date | null;
}

export class FrozenError extends DeferredError {
  override readonly name = 'FrozenError';
  override readonly code = 'frozen';
  override readonly mayWait: boolean;
  override readonly reason = 'frozen';
  override readonly state = 'was frozen';
  readonly rule: ApplicableRule<'freeze'>;

  constructor({ rule, until }: Freeze, organization: string, hint: string) {
    const end = until === null ? '' : ` until ${until.toISOString().replace('.000Z', 'Z')}`;
    const note = rule.note === '' ? '' : `: ${rule.note}`;
    super(`Frozen: updates of ${describeScope(rule, organization)} are not allowed${end}${note}. ${hint}`);
    this.rule = rule;
    this.mayWait = rule.settings.mode === 'wait';
  }
}

/** Call this with the stack locked. Throws FrozenError. */
export function assertThawed({ organization, updateRules }: StackWithRules): void {
  const freeze = findFreeze(updateRules);
  if (freeze !== null)
    throw new FrozenError(freeze, organization, 'Nothing else changes the stack either, until it is thawed');
}

/** A freeze that refuses updates precedes one that lets them wait. */
export function findFreeze(rules: UpdateRules): Freeze | null {
  const inForce = rules.all('freeze').flatMap((rule) => {
    const end = endOf(rule.settings, rules.now);
    return end === null ? [] : [{ rule, until: end.until }];
  });
  return inForce.find(({ rule }) => rule.settings.mode !== 'wait') ?? inForce[0] ?? null;
}

export interface FreezeTimes {
  /** Null if the freeze is not in force; `until` is null if it lasts until thawed. */
  readonly inForce: { readonly until: Date | null } | null;
  /** Empty if the freeze ends before its next window, or has none. */
  readonly next: readonly WindowTimes[];
}

export function freezeTimes(settings: RuleSettings<'freeze'>, now: Date, most: number): FreezeTimes {
  const { until, windows = [] } = settings;
  const end = until === undefined ? null : new Date(until);
  const next = nextWindows(windows, now, most).filter(({ from }) => end === null || from < end);
  return {
    inForce: endOf(settings, now),
    next: next.map((times) => (end !== null && end < times.until ? { ...times, until: end } : times)),
  };
}

/** `settings` is JSON text. */
export function isInForce(settings: string, now: Date): boolean {
  return endOf(JSON.parse(settings) as RuleSettings<'freeze'>, now) !== null;
}

/** Null if the freeze is not in force. */
function endOf({ until, windows }: RuleSettings<'freeze'>, now: Date): { readonly until: Date | null } | null {
  const end = until === undefined ? null : new Date(until);
  if (end !== null && end <= now) return null;
  if (windows === undefined) return { until: end };
  const ends = windows.flatMap((window) => endOfWindow(window, now) ?? []);
  if (ends.length === 0) return null;
  const last = new Date(Math.max(...ends.map((each) => each.getTime())));
  return { until: end !== null && end < last ? end : last };
}
