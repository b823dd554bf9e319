import type { EventSource } from './webhook-event-repository.ts';
import { describeEvent } from './webhook-events.ts';

/** As sent by the client of an update. */
export interface EventOrigin {
  readonly commit: string;
  readonly branch: string;
  /** CI may have checked out a merge commit instead. */
  readonly pullRequestHead: string;
  readonly pullRequest: string;
  /** For example `github.com`. */
  readonly host: string;
  readonly owner: string;
  readonly repository: string;
  readonly ciSystem: string;
  readonly ciUrl: string;
}

/** Independent of the format, and the same for each attempt. */
export interface EventFacts {
  readonly event: string;
  readonly occurredAt: string;
  readonly organization: string;
  readonly project: string | null;
  readonly stack: string | null;
  readonly login: string | null;
  readonly details: Readonly<Record<string, unknown>>;
  readonly update: {
    readonly id: string;
    readonly kind: string;
    readonly isPreview: boolean;
    /** Null if the event is not about the end of the update. */
    readonly result: string | null;
    readonly version: number | null;
    readonly message: string;
    readonly resourceChanges: Readonly<Record<string, number>>;
    readonly startedAt: string | null;
    readonly endedAt: string | null;
    readonly origin: EventOrigin;
    readonly unusual: readonly string[];
  } | null;
}

const maxChars = 300;

/** If the update has begun or waits, its end is omitted, although it may have ended meanwhile. */
export function factsOf(source: EventSource, unusual: readonly string[] = []): EventFacts {
  const { dryRun, endedAt, endReason, event, kind, status, updateId } = source;
  const hasBegun = describeEvent(event).group === 'holdfast';
  return {
    event,
    occurredAt: source.occurredAt.toISOString(),
    organization: source.organization,
    project: source.project,
    stack: source.stack,
    login: source.login,
    details: objectOf(source.details),
    update:
      updateId === null || kind === null
        ? null
        : {
            id: updateId,
            kind,
            isPreview: dryRun === true || kind === 'preview',
            result: hasBegun ? null : endReason === 'cancelled' ? 'cancelled' : status,
            version: source.stackVersion,
            message: source.message ?? '',
            resourceChanges: hasBegun ? {} : countsOf(source.resourceChanges),
            startedAt: source.startedAt?.toISOString() ?? null,
            endedAt: hasBegun ? null : (endedAt?.toISOString() ?? null),
            origin: originOf(source.environment),
            unusual: hasBegun ? [] : unusual,
          },
  };
}

export function originOf(environment: string | null): EventOrigin {
  const values = objectOf(environment);
  const text = (name: string): string => {
    const value = values[name];
    return typeof value === 'string' ? value.slice(0, maxChars).toWellFormed() : '';
  };
  return {
    commit: text('git.head'),
    branch: text('git.headName'),
    pullRequestHead: text('ci.pr.headSHA'),
    pullRequest: text('ci.pr.number'),
    host: text('vcs.kind'),
    owner: text('vcs.owner'),
    repository: text('vcs.repo'),
    ciSystem: text('ci.system'),
    ciUrl: /^https?:\/\//.test(text('ci.build.url')) ? text('ci.build.url') : '',
  };
}

/** Drops values that are not numbers. */
function countsOf(changes: string | null): Readonly<Record<string, number>> {
  const entries = Object.entries(objectOf(changes)).filter(
    (entry): entry is [string, number] => Number.isSafeInteger(entry[1]) && /^[a-z-]{1,40}$/.test(entry[0]),
  );
  return Object.fromEntries(entries);
}

function objectOf(text: string | null): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text ?? '{}');
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    // The client sent text without usable facts.
    return {};
  }
}

/** `organization/project/stack`, or the known parts of it. */
export function subjectOf({ organization, project, stack }: EventFacts): string {
  return [organization, project, stack].filter((part) => part !== null).join('/');
}

/** For example `2 create, 1 delete`; empty without changes. */
function summaryOf({ details, event, update }: EventFacts): string {
  const counts =
    event === 'drift_detected' ? countsOf(JSON.stringify(details['changes'] ?? {})) : update?.resourceChanges;
  return Object.entries(counts ?? {})
    .filter(([operation, count]) => operation !== 'same' && count > 0)
    .map(([operation, count]) => `${count} ${operation}`)
    .join(', ');
}

export function sentenceOf(facts: EventFacts): string {
  const { update } = facts;
  const text =
    update?.result === 'cancelled'
      ? `${update.isPreview ? 'preview' : update.kind} was cancelled`
      : describeEvent(facts.event).text;
  const said = facts.details['text'];
  if (typeof said === 'string' && said !== '') return `${text}: ${said.slice(0, maxChars).toWellFormed()}`;
  const summary = summaryOf(facts);
  const unusual = update?.unusual.map((each) => `; unusual: ${each}`).join('') ?? '';
  return `${summary === '' ? text : `${text} (${summary})`}${unusual}`;
}
