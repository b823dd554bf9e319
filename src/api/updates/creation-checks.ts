import type { LockedAccess } from '../../shared/identity/identity-repository.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import type { UnindexedStack } from '../../shared/search/due-index-repository.ts';
import { assertImported } from '../../shared/stacks/stack-errors.ts';
import { readTags } from '../../shared/stacks/tags.ts';
import { commitOf, headOf } from '../../shared/updates/commit.ts';
import type { StackWithRules } from '../../shared/updates/rules/update-rule-repository.ts';
import { StackBusyError } from '../../shared/updates/update-errors.ts';
import { createUpdateQueueRepository } from '../../shared/updates/update-queue-repository.ts';
import { assertPermission } from '../access/stack-access.ts';
import type { Caller } from '../platform/http/request.ts';
import type { NewUpdateRequest } from './new-update-request.ts';
import { concurrencyLimitsOf } from './rules/concurrency-limit.ts';
import { assertNotConsumed, checkOutputLoss } from './rules/consumers.ts';
import { describeBusy, type PreviewCheck, PreviewNeededError, previewRule } from './rules/preview-check.ts';
import {
  assertNotFrozen,
  assertPreviewed,
  assertWithinConcurrencyLimits,
  type BreakGlass,
  LimitsChangedError,
} from './rules/rule-checks.ts';

/** An update to be created, and its stack, which is locked. */
export interface Candidate {
  readonly tx: Queryable;
  readonly request: NewUpdateRequest;
  readonly caller: Caller;
  readonly access: LockedAccess;
  readonly stack: StackWithRules;
  readonly isPreview: boolean;
  /** Whether the update locks the stack. */
  readonly isExclusive: boolean;
  /** Whether the caller waits while the stack is busy. */
  readonly mayWait: boolean;
  /** The entry of the caller in the queue of the stack; null: none. */
  readonly entryId: string | null;
  /** Keys of the limits whose locks the transaction holds, so that it may count what runs under them. */
  readonly counted: ReadonlySet<string>;
  /** Stacks whose references are not known: see awaitConsumers. */
  readonly unindexed: readonly UnindexedStack[];
}

/** Results of the checks of an update, for later checks. */
export interface Findings {
  /** The update bypasses rules. */
  breakGlass: BreakGlass | null;
  /** A warning to the user about removed outputs. */
  removal: string | null;
  /** The result of the preview rule. */
  previewed: PreviewCheck | null;
  /** How long the caller has waited for the stack, in ms; null: it has not waited. */
  waitedMs: number | null;
}

type Found = Partial<Findings> | undefined;
/** Throws if the update may not be created. Returns its findings for later checks. */
type Check = (candidate: Candidate, findings: Readonly<Findings>) => Found | Promise<Found>;

const of = {
  all: () => true,
  changes: ({ isPreview }: Candidate) => !isPreview,
  updates: ({ isPreview, request }: Candidate) => !isPreview && request.kind === 'update',
  destroys: ({ isPreview, request }: Candidate) => !isPreview && request.kind === 'destroy',
};

/**
 * The checks when an update is created, in this order; the first check that fails throws. An update that must wait for its stack is refused
 * before the wait if waiting would not help.
 */
const checks: readonly (readonly [keyof typeof of, Check])[] = [
  ['all', checkPermission],
  ['all', checkImport],
  ['changes', checkCounting],
  ['changes', checkFreezes],
  ['destroys', checkConsumers],
  ['updates', checkOutputs],
  ['all', checkStackFree],
  ['changes', checkPreviewRule],
  ['all', checkTurn],
  ['changes', checkLimits],
  ['all', endWaiting],
];

/** Throws the error of the first check that fails. */
export async function checkCandidate(candidate: Candidate): Promise<Findings> {
  const findings: Findings = { breakGlass: null, removal: null, previewed: null, waitedMs: null };
  for (const [subject, check] of checks)
    if (of[subject](candidate)) Object.assign(findings, await check(candidate, findings));
  return findings;
}

/** Throws NotFoundError, ForbiddenError. A preview that locks the stack needs the permission to write, because it blocks updates. */
function checkPermission({ access, isExclusive, stack }: Candidate): undefined {
  assertPermission(access, stack, readTags(stack.tags), isExclusive ? 'write' : 'preview');
}

/** Throws ImportUnfinishedError. */
function checkImport({ stack }: Candidate): undefined {
  assertImported(stack);
}

/** Throws LimitsChangedError. */
function checkCounting({ caller, counted, stack }: Candidate): undefined {
  if (!keysOfLimits(stack, caller).every((key) => counted.has(key))) throw new LimitsChangedError();
}

/** The keys of the limits that an update of the stack counts for. */
export function keysOfLimits(stack: StackWithRules, caller: Caller): readonly string[] {
  return concurrencyLimitsOf(stack.updateRules, stack, caller).map(({ key }) => key);
}

/** Throws FrozenError. */
function checkFreezes({ access, request, stack }: Candidate): Found {
  return { breakGlass: assertNotFrozen(stack, access, request.message) };
}

/** Throws ConsumersError. */
async function checkConsumers(
  { access, stack, tx, unindexed }: Candidate,
  { breakGlass }: Findings,
): Promise<undefined> {
  if (breakGlass === null) await assertNotConsumed(tx, stack, access, 'destroy', unindexed);
}

/** Throws ConsumersError. */
async function checkOutputs(candidate: Candidate, { breakGlass }: Findings): Promise<Found> {
  const { access, stack, tx, unindexed } = candidate;
  if (breakGlass !== null) return;
  return { removal: await checkOutputLoss(tx, stack, access, previewOf(candidate), unindexed) };
}

/** The properties that identify the preview of this update. */
export function previewOf({ caller, request }: Pick<Candidate, 'caller' | 'request'>) {
  return { ...caller, commit: headOf(request.environment) };
}

/** Throws StackBusyError, PreviewNeededError. */
function checkStackFree(
  { isExclusive, mayWait, request, stack, ...of }: Candidate,
  { breakGlass }: Findings,
): undefined {
  if (!isExclusive || stack.activeUpdateId === null) return;
  const rule = of.isPreview ? null : previewRule(stack, request.kind);
  // A caller that waits for the end of an update starts from a different version than the preview.
  if (rule?.settings.mode === 'refuse' && mayWait && breakGlass === null)
    throw new PreviewNeededError(describeBusy(stack, rule, request.kind));
  throw new StackBusyError();
}

/** Throws PreviewNeededError. */
async function checkPreviewRule({ request, stack, tx }: Candidate, { breakGlass }: Findings): Promise<Found> {
  const { environment, kind } = request;
  const rule = previewRule(stack, kind);
  if (rule === null) return;
  return { previewed: await assertPreviewed(tx, rule, { stack, kind, commit: commitOf(environment), breakGlass }) };
}

/** Throws StackBusyError unless the caller is first in the queue. */
async function checkTurn(candidate: Candidate, findings: Findings): Promise<undefined> {
  const { entryId, stack, tx } = candidate;
  if (!isQueued(candidate, findings)) return;
  if ((await createUpdateQueueRepository(tx).findFirst(stack.id)) !== entryId) throw new StackBusyError();
}

/** Throws LimitError. */
async function checkLimits({ caller, entryId, stack, tx }: Candidate, { breakGlass }: Findings): Promise<undefined> {
  await assertWithinConcurrencyLimits(tx, stack, { breakGlass, caller, entryId });
}

/** Removes the caller from the queue. Throws StackBusyError if a newer run has superseded this one. */
async function endWaiting(candidate: Candidate, findings: Findings): Promise<Found> {
  const { entryId, tx } = candidate;
  if (entryId === null || !isQueued(candidate, findings)) return;
  const waitedMs = await createUpdateQueueRepository(tx).take(entryId);
  if (waitedMs === null) throw new StackBusyError();
  return { waitedMs };
}

/** Whether waiting calls take precedence. An emergency goes ahead of all waiting calls. */
function isQueued({ mayWait, entryId }: Candidate, { breakGlass }: Findings): boolean {
  return mayWait && (breakGlass === null || entryId !== null);
}
