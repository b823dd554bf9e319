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

/** An update to be created, and its locked stack. */
export interface Candidate {
  readonly tx: Queryable;
  readonly request: NewUpdateRequest;
  readonly caller: Caller;
  readonly access: LockedAccess;
  readonly stack: StackWithRules;
  readonly isPreview: boolean;
  readonly isExclusive: boolean;
  readonly mayWait: boolean;
  /** The caller's entry in the queue of the stack. */
  readonly entryId: string | null;
  /** Keys of the limits whose locks the transaction holds, so that it may count what runs under them. */
  readonly counted: ReadonlySet<string>;
  /** Stacks whose references are not known: see awaitConsumers. */
  readonly unindexed: readonly UnindexedStack[];
}

export interface Findings {
  breakGlass: BreakGlass | null;
  /** A warning to the user about removed outputs. */
  removal: string | null;
  previewed: PreviewCheck | null;
  /** How long the caller has waited for the stack, in ms; null: it has not waited. */
  waitedMs: number | null;
}

type Found = Partial<Findings> | undefined;
type Check = (candidate: Candidate, findings: Readonly<Findings>) => Found | Promise<Found>;

const of = {
  all: () => true,
  changes: ({ isPreview }: Candidate) => !isPreview,
  updates: ({ isPreview, request }: Candidate) => !isPreview && request.kind === 'update',
  destroys: ({ isPreview, request }: Candidate) => !isPreview && request.kind === 'destroy',
};

/**
 * Checks run in this order; the first one that fails throws. An update that must wait for its stack is refused before the wait if waiting
 * would not help.
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

export async function checkCandidate(candidate: Candidate): Promise<Findings> {
  const findings: Findings = { breakGlass: null, removal: null, previewed: null, waitedMs: null };
  for (const [subject, check] of checks)
    if (of[subject](candidate)) Object.assign(findings, await check(candidate, findings));
  return findings;
}

/** A preview that locks the stack needs the permission to write, because it blocks updates. */
function checkPermission({ access, isExclusive, stack }: Candidate): undefined {
  assertPermission(access, stack, readTags(stack.tags), isExclusive ? 'write' : 'preview');
}

function checkImport({ stack }: Candidate): undefined {
  assertImported(stack);
}

function checkCounting({ caller, counted, stack }: Candidate): undefined {
  if (!keysOfLimits(stack, caller).every((key) => counted.has(key))) throw new LimitsChangedError();
}

export function keysOfLimits(stack: StackWithRules, caller: Caller): readonly string[] {
  return concurrencyLimitsOf(stack.updateRules, stack, caller).map(({ key }) => key);
}

function checkFreezes({ access, request, stack }: Candidate): Found {
  return { breakGlass: assertNotFrozen(stack, access, request.message) };
}

async function checkConsumers(
  { access, stack, tx, unindexed }: Candidate,
  { breakGlass }: Findings,
): Promise<undefined> {
  if (breakGlass === null) await assertNotConsumed(tx, stack, access, 'destroy', unindexed);
}

async function checkOutputs(candidate: Candidate, { breakGlass }: Findings): Promise<Found> {
  const { access, stack, tx, unindexed } = candidate;
  if (breakGlass !== null) return;
  return { removal: await checkOutputLoss(tx, stack, access, previewOf(candidate), unindexed) };
}

export function previewOf({ caller, request }: Pick<Candidate, 'caller' | 'request'>) {
  return { ...caller, commit: headOf(request.environment) };
}

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

async function checkPreviewRule({ request, stack, tx }: Candidate, { breakGlass }: Findings): Promise<Found> {
  const { environment, kind } = request;
  const rule = previewRule(stack, kind);
  if (rule === null) return;
  return { previewed: await assertPreviewed(tx, rule, { stack, kind, commit: commitOf(environment), breakGlass }) };
}

async function checkTurn(candidate: Candidate, findings: Findings): Promise<undefined> {
  const { entryId, stack, tx } = candidate;
  if (!isQueued(candidate, findings)) return;
  if ((await createUpdateQueueRepository(tx).findFirst(stack.id)) !== entryId) throw new StackBusyError();
}

async function checkLimits({ caller, entryId, stack, tx }: Candidate, { breakGlass }: Findings): Promise<undefined> {
  await assertWithinConcurrencyLimits(tx, stack, { breakGlass, caller, entryId });
}

/** Takes the caller out of the queue. Fails if a newer run has superseded this one. */
async function endWaiting(candidate: Candidate, findings: Findings): Promise<Found> {
  const { entryId, tx } = candidate;
  if (entryId === null || !isQueued(candidate, findings)) return;
  const waitedMs = await createUpdateQueueRepository(tx).take(entryId);
  if (waitedMs === null) throw new StackBusyError();
  return { waitedMs };
}

/** An emergency goes ahead of all waiting calls. */
function isQueued({ mayWait, entryId }: Candidate, { breakGlass }: Findings): boolean {
  return mayWait && (breakGlass === null || entryId !== null);
}
