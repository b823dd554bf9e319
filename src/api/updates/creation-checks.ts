import type { LockedAccess } from '../../shared/identity/identity-repository.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import type { UnindexedStack } from '../../shared/search/due-index-repository.ts';
import { assertImported } from '../../shared/stacks/stack-errors.ts';
import { readTags } from '../../shared/stacks/tags.ts';
import { commitOf, headOf } from '../../shared/state/journal/change-limits/approvals.ts';
import { assertNoFault } from '../../shared/state/journal/journal-fault.ts';
import type { StackWithRules } from '../../shared/updates/rules/update-rule-repository.ts';
import type { UpdateRules } from '../../shared/updates/rules/update-rules.ts';
import { StackBusyError } from '../../shared/updates/state-edits.ts';
import { createUpdateQueueRepository } from '../../shared/updates/update-queue-repository.ts';
import { assertPermission } from '../access/stack-access.ts';
import type { Caller } from '../platform/http/request.ts';
import type { NewUpdateRequest } from './new-update-request.ts';
import {
  assertNotFrozen,
  assertPreviewed,
  assertWithinLimits,
  type BreakGlass,
  LimitsChangedError,
} from './rule-checks.ts';
import { assertNotConsumed, checkOutputLoss } from './rules/consumers.ts';
import { describeBusy, type PreviewCheck, PreviewNeededError, previewRule } from './rules/preview-check.ts';

/** An update that may be created, with its stack, which is locked. */
export interface Candidate {
  readonly tx: Queryable;
  readonly request: NewUpdateRequest;
  readonly caller: Caller;
  readonly access: LockedAccess;
  readonly stack: StackWithRules;
  readonly isPreview: boolean;
  /** Whether the update locks the stack. */
  readonly isExclusive: boolean;
  /** Whether its caller waits while the stack is busy. */
  readonly mayWait: boolean;
  /** The entry of the caller in the queue of the stack; null: none. */
  readonly entryId: string | null;
  /** Whether the transaction may count what runs in the organization: see lockLimits. */
  readonly isCounting: boolean;
  /** Stacks whose references are not known: see awaitConsumers. */
  readonly unindexed: readonly UnindexedStack[];
}

/** Findings of the checks about an update. Later checks use them. */
export interface Findings {
  /** The update bypasses rules. */
  breakGlass: BreakGlass | null;
  /** Warnings to the user about removed outputs. */
  removal: string | null;
  /** The result of the preview rule. */
  previewed: PreviewCheck | null;
  /** How long its caller has waited for the stack, in ms; null: it has not. */
  waitedMs: number | null;
}

type Check = (candidate: Candidate, findings: Findings) => unknown;

const of = {
  all: () => true,
  changes: ({ isPreview }: Candidate) => !isPreview,
  updates: ({ isPreview, request }: Candidate) => !isPreview && request.kind === 'update',
  destroys: ({ isPreview, request }: Candidate) => !isPreview && request.kind === 'destroy',
};

/**
 * The checks when an update is created, in this order: the first one that fails throws. An update that has to wait for its stack
 * is refused before it waits if waiting would not help.
 */
const checks: readonly (readonly [keyof typeof of, Check])[] = [
  ['all', isPermitted],
  ['all', isImported],
  ['changes', isCounted],
  ['changes', isNotFrozen],
  ['destroys', isNotConsumed],
  ['updates', keepsOutputs],
  ['all', findsStackFree],
  ['changes', isPreviewed],
  ['all', hasItsTurn],
  ['changes', isWithinLimits],
  ['all', endsWaiting],
  ['changes', hasNoFault],
];

/** Throws the error of the first check that fails. */
export async function checkCandidate(candidate: Candidate): Promise<Findings> {
  const findings: Findings = { breakGlass: null, removal: null, previewed: null, waitedMs: null };
  for (const [subject, check] of checks) if (of[subject](candidate)) await check(candidate, findings);
  return findings;
}

/** Throws NotFoundError, ForbiddenError. A preview that locks the stack keeps updates away. */
function isPermitted({ access, isExclusive, stack }: Candidate): void {
  assertPermission(access, stack, readTags(stack.tags), isExclusive ? 'write' : 'preview');
}

/** Throws ImportUnfinishedError. */
function isImported({ stack }: Candidate): void {
  assertImported(stack);
}

/** Throws LimitsChangedError. */
function isCounted({ isCounting, stack }: Candidate): void {
  if (!isCounting && isLimited(stack.updateRules)) throw new LimitsChangedError();
}

export function isLimited(rules: UpdateRules): boolean {
  return rules.first('concurrency') !== null;
}

/** Throws FrozenError. */
function isNotFrozen({ access, request, stack }: Candidate, findings: Findings): void {
  findings.breakGlass = assertNotFrozen(stack, access, request.message);
}

/** Throws ConsumersError. */
async function isNotConsumed({ access, stack, tx, unindexed }: Candidate, { breakGlass }: Findings): Promise<void> {
  if (breakGlass === null) await assertNotConsumed(tx, stack, access, 'destroy', unindexed);
}

/** Throws ConsumersError. */
async function keepsOutputs(candidate: Candidate, findings: Findings): Promise<void> {
  const { access, stack, tx, unindexed } = candidate;
  if (findings.breakGlass !== null) return;
  findings.removal = await checkOutputLoss(tx, stack, access, previewOf(candidate), unindexed);
}

/** The properties that identify the preview of this update. */
export function previewOf({ caller, request }: Pick<Candidate, 'caller' | 'request'>) {
  return { ...caller, commit: headOf(request.environment) };
}

/** Throws StackBusyError, PreviewNeededError. */
function findsStackFree({ isExclusive, mayWait, request, stack, ...of }: Candidate, { breakGlass }: Findings): void {
  if (!isExclusive || stack.activeUpdateId === null) return;
  const rule = of.isPreview ? null : previewRule(stack, request.kind);
  // A caller that waits for the end of an update starts from a different version than the preview.
  if (rule?.settings.mode === 'refuse' && mayWait && breakGlass === null)
    throw new PreviewNeededError(describeBusy(stack, rule, request.kind));
  throw new StackBusyError();
}

/** Throws PreviewNeededError. */
async function isPreviewed({ request, stack, tx }: Candidate, findings: Findings): Promise<void> {
  const { environment, kind } = request;
  const rule = previewRule(stack, kind);
  if (rule === null) return;
  const update = { stack, kind, commit: commitOf(environment), breakGlass: findings.breakGlass };
  findings.previewed = await assertPreviewed(tx, rule, update);
}

/** Throws StackBusyError unless the caller is first in the queue. */
async function hasItsTurn(candidate: Candidate, findings: Findings): Promise<void> {
  const { entryId, stack, tx } = candidate;
  if (!isQueued(candidate, findings)) return;
  if ((await createUpdateQueueRepository(tx).findFirst(stack.id)) !== entryId) throw new StackBusyError();
}

/** Throws LimitError. */
function isWithinLimits({ caller, entryId, stack, tx }: Candidate, { breakGlass }: Findings): Promise<void> {
  return assertWithinLimits(tx, stack, { breakGlass, caller, entryId });
}

/** Throws StackBusyError if a newer run has superseded this one. */
async function endsWaiting(candidate: Candidate, findings: Findings): Promise<void> {
  const { entryId, tx } = candidate;
  if (entryId === null || !isQueued(candidate, findings)) return;
  findings.waitedMs = await createUpdateQueueRepository(tx).take(entryId);
  if (findings.waitedMs === null) throw new StackBusyError();
}

/** Whether waiting calls take precedence. An emergency goes ahead of all of them. */
function isQueued({ mayWait, entryId }: Candidate, { breakGlass }: Findings): boolean {
  return mayWait && (breakGlass === null || entryId !== null);
}

/** Throws JournalFaultError. */
function hasNoFault({ stack, tx }: Candidate): Promise<void> {
  return assertNoFault(tx, stack.id);
}
