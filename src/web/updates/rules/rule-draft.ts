import type { Rule } from '../../platform/app/procedure-types.ts';
import type { FreezeWindow, RuleKind } from './rule-labels.ts';

export const scopes = ['organization', 'project', 'stack', 'tag'] as const;
export type ScopeKind = (typeof scopes)[number];

export interface DraftWindow {
  readonly cron: string;
  readonly timeZone: string;
  readonly hours: string;
}

/** A rule in the form of its fields' texts. */
export interface RuleDraft {
  readonly kind: RuleKind;
  readonly scope: ScopeKind;
  readonly project: string;
  readonly stack: string;
  readonly tagName: string;
  readonly tagValue: string;
  readonly note: string;
  /** For a freeze: local time in the format of `datetime-local`. */
  readonly until: string;
  /** The saved time: the local time lacks its milliseconds, and is ambiguous in the hour that a clock change repeats. */
  readonly savedUntil: string;
  readonly windows: readonly DraftWindow[];
  readonly mode: string;
  readonly most: string;
  readonly per: string;
  readonly seconds: string;
  readonly by: string;
  readonly changes: string;
  readonly percent: string;
  /** One type per line. */
  readonly types: string;
  readonly ownPreview: string;
  readonly withoutJournal: string;
  readonly approvers: string;
  /** Number of the newest states to keep. */
  readonly newest: string;
  readonly days: string;
  readonly daily: string;
  readonly monthly: string;
}

export interface SettingsProps {
  readonly draft: RuleDraft;
  readonly onChange: (part: Partial<RuleDraft>) => void;
}

/** The request body for a rule. */
export interface WrittenRule {
  readonly kind: string;
  readonly project: string | null;
  readonly stack: string | null;
  readonly tag: { readonly name: string; readonly value: string } | null;
  readonly settings: Record<string, unknown>;
  readonly note: string;
}

export function emptyDraft(kind: RuleKind): RuleDraft {
  return {
    ...{ kind, scope: 'organization', project: '', stack: '', tagName: '', tagValue: '', note: '' },
    ...{ until: '', savedUntil: '' },
    windows: [],
    mode: kind === 'consumers' || kind === 'require-preview' ? 'warn' : 'refuse',
    ...{ most: '10', per: 'all', seconds: '600', by: 'branch', changes: '', percent: '', types: '' },
    ...{ ownPreview: 'counts', withoutJournal: 'allow', approvers: 'people' },
    ...keptByDefault(kind),
  };
}

export function keptByDefault(kind: RuleKind): Pick<RuleDraft, 'daily' | 'days' | 'monthly' | 'newest'> {
  return kind === 'keep-versions'
    ? { newest: '10', days: '30', daily: '90', monthly: '24' }
    : { newest: '', days: '90', daily: '', monthly: '' };
}

export function draftOf({ kind, note, project, settings, stack, tag }: Omit<Rule, 'freeze' | 'isManaged'>): RuleDraft {
  const empty = emptyDraft(kind as RuleKind);
  const savedUntil = typeof settings['until'] === 'string' ? settings['until'] : '';
  const text = (name: keyof RuleDraft & string): string => {
    const value = settings[name];
    return value === undefined ? String(empty[name]) : String(value);
  };
  return {
    ...empty,
    scope: stack !== null ? 'stack' : tag !== null ? 'tag' : project !== null ? 'project' : 'organization',
    ...{ project: project ?? '', stack: stack ?? '', tagName: tag?.name ?? '', tagValue: tag?.value ?? '', note },
    ...{ mode: text('mode'), most: text('most'), per: text('per'), seconds: text('seconds'), by: text('by') },
    ...{ changes: text('changes'), percent: text('percent') },
    types: Array.isArray(settings['types']) ? settings['types'].map(String).join('\n') : '',
    ...{ ownPreview: text('ownPreview'), withoutJournal: text('withoutJournal'), approvers: text('approvers') },
    ...(kind === 'keep-versions' ? { newest: '', days: '', daily: '', monthly: '' } : {}),
    ...keptOf(settings),
    ...{ until: localTime(savedUntil), savedUntil },
    windows: ((settings['windows'] ?? []) as readonly FreezeWindow[]).map(({ cron, minutes, timeZone }) => ({
      cron,
      timeZone,
      // Written back as whole minutes, regardless of the number of decimals.
      hours: String(Number((minutes / 60).toFixed(4))),
    })),
  };
}

function keptOf(settings: Readonly<Record<string, unknown>>): Partial<RuleDraft> {
  const names = ['newest', 'days', 'daily', 'monthly'] as const;
  return Object.fromEntries(
    names.flatMap((name) => (settings[name] === undefined ? [] : [[name, String(settings[name])]])),
  );
}

/** Formats the time as `datetime-local`, to the second. */
function localTime(iso: string): string {
  if (iso === '') return '';
  const time = new Date(iso);
  const local = new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString();
  return local.slice(0, time.getUTCSeconds() === 0 ? 16 : 19);
}

export function writtenRule(draft: RuleDraft): WrittenRule | null {
  const { kind, note, scope } = draft;
  const settings = settingsOf(draft);
  const [project, stack, tagName] = [draft.project.trim(), draft.stack.trim(), draft.tagName.trim()];
  if (settings === null) return null;
  if ((scope === 'project' || scope === 'stack') && project === '') return null;
  if (scope === 'stack' && stack === '') return null;
  if (scope === 'tag' && tagName === '') return null;
  return {
    kind,
    project: scope === 'organization' || project === '' ? null : project,
    stack: scope === 'stack' ? stack : null,
    tag: scope === 'tag' ? { name: tagName, value: draft.tagValue.trim() } : null,
    settings,
    note: note.trim(),
  };
}

function settingsOf(draft: RuleDraft): Record<string, unknown> | null {
  const strict = draft.withoutJournal === 'refuse' ? { withoutJournal: 'refuse' } : {};
  const approving = draft.approvers === 'tokens' ? { approvers: 'tokens' } : {};
  switch (draft.kind) {
    case 'freeze':
      return freezeSettings(draft);
    case 'concurrency': {
      const most = numberOf(draft.most);
      return most === null ? null : { most, ...(draft.per === 'all' ? {} : { per: draft.per }) };
    }
    case 'lock-wait':
    case 'wait-alert': {
      const seconds = numberOf(draft.seconds);
      return seconds === null ? null : { seconds };
    }
    case 'supersede':
      return { by: draft.by };
    case 'consumers':
      return { mode: draft.mode };
    case 'change-limit': {
      const changes = numberOf(draft.changes);
      const percent = numberOf(draft.percent);
      if (changes === null && percent === null) return null;
      return {
        ...(changes === null ? {} : { changes }),
        ...(percent === null ? {} : { percent }),
        ...approving,
        ...strict,
      };
    }
    case 'protected-types': {
      const types = draft.types.split('\n').flatMap((line) => line.trim() || []);
      return types.length === 0 ? null : { types, ...approving, ...strict };
    }
    case 'keep-versions': {
      const names = ['newest', 'days', 'daily', 'monthly'] as const;
      const kept = names.flatMap((name) =>
        numberOf(draft[name]) === null ? [] : [[name, numberOf(draft[name])] as const],
      );
      return kept.length === 0 ? null : Object.fromEntries(kept);
    }
    case 'keep-events':
    case 'keep-previews': {
      const days = numberOf(draft.days);
      return days === null ? null : { days };
    }
    case 'require-preview':
      return { mode: draft.mode, ...(draft.ownPreview === 'ignored' ? { ownPreview: 'ignored' } : {}), ...strict };
  }
}

function freezeSettings({ mode, savedUntil, until, windows }: RuleDraft): Record<string, unknown> | null {
  const written = windows.map(({ cron, hours, timeZone }) => {
    const lasts = numberOf(hours);
    return lasts === null || cron.trim() === '' || timeZone.trim() === ''
      ? null
      : { cron: cron.trim().replaceAll(/\s+/g, ' '), timeZone: timeZone.trim(), minutes: Math.round(lasts * 60) };
  });
  if (written.includes(null)) return null;
  const end = until === '' ? null : new Date(until === localTime(savedUntil) ? savedUntil : until);
  if (end !== null && Number.isNaN(end.getTime())) return null;
  return {
    ...(mode === 'wait' ? { mode } : {}),
    ...(end === null ? {} : { until: end.toISOString() }),
    ...(written.length === 0 ? {} : { windows: written }),
  };
}

function numberOf(text: string): number | null {
  return text.trim() === '' || Number.isNaN(Number(text)) ? null : Number(text);
}
