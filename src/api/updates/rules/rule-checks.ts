import type { LockedAccess } from '../../../shared/identity/identity-repository.ts';
import type { Queryable } from '../../../shared/platform/db/sql.ts';
import { isLockTimeout } from '../../../shared/platform/db/sqlstate.ts';
import { cancelHint } from '../../../shared/updates/deferred.ts';
import { FrozenError, findFreeze } from '../../../shared/updates/rules/freeze.ts';
import type { StackWithRules } from '../../../shared/updates/rules/update-rule-repository.ts';
import type { ApplicableRule } from '../../../shared/updates/rules/update-rules.ts';
import type { Caller } from '../../platform/http/request.ts';
import { breakGlassReason, mayBreakGlass } from '../break-glass.ts';
import { concurrencyLimitsOf, LimitError } from './concurrency-limit.ts';
import { createConcurrencyLimitRepository } from './concurrency-limit-repository.ts';
import { checkPreview, type PreviewCheck, PreviewNeededError } from './preview-check.ts';

/** A bypass of rules, for the audit log. */
export interface BreakGlass {
  readonly reason: string;
  /** Ids of the rules that would have deferred or refused it. */
  readonly rules: string[];
}

/** Another transaction has held the lock of the same limits for too long. Nothing was changed. */
export class LimitsBusyError extends Error {
  override readonly name = 'LimitsBusyError';
}

export function limitsBusy(error: unknown): never {
  throw isLockTimeout(error)
    ? new LimitsBusyError('The limits of the organization are locked', { cause: error })
    : error;
}

/** The stack has limits whose locks the creation did not take before the lock on the stack. Nothing was changed. */
export class LimitsChangedError extends Error {
  override readonly name = 'LimitsChangedError';
}

/** Call with the stack locked. Returns the bypass, if the message breaks the glass. Throws FrozenError. */
export function assertNotFrozen(stack: StackWithRules, access: LockedAccess, message: string): BreakGlass | null {
  const freeze = findFreeze(stack.updateRules);
  const reason = breakGlassReason(message);
  if (reason !== null && mayBreakGlass(access, stack))
    return { reason, rules: freeze === null ? [] : [freeze.rule.id] };
  if (freeze === null) return null;
  const hint =
    reason === null
      ? emergencyHint
      : `Breaking the glass needs the permission manage on the stack, and CI runs cannot do it; ${cancelHint}`;
  throw new FrozenError(freeze, stack.organization, hint);
}

const emergencyHint = `Previews still run; ${cancelHint}. In an emergency, a user with the permission manage can start an update with --message "break-glass: <reason>", which is recorded`;

/** Updates that wait ahead of this one count, too. With `breakGlass`, notes the limits instead of throwing LimitError. */
export async function assertWithinConcurrencyLimits(
  tx: Queryable,
  stack: StackWithRules,
  { breakGlass, caller, entryId }: { breakGlass: BreakGlass | null; caller: Caller; entryId: string | null },
): Promise<void> {
  for (const limit of concurrencyLimitsOf(stack.updateRules, stack, caller)) {
    const { ahead, running } = await createConcurrencyLimitRepository(tx).standing(limit, {
      entryId,
      projectId: stack.projectId,
    });
    if (running + ahead < limit.rule.settings.most) continue;
    if (breakGlass === null) throw new LimitError(limit, running);
    breakGlass.rules.push(limit.rule.id);
  }
}

/** Throws PreviewNeededError if the rule refuses updates without a preview; with `breakGlass`, notes the rule instead. */
export async function assertPreviewed(
  tx: Queryable,
  rule: ApplicableRule<'require-preview'>,
  { breakGlass, ...of }: Parameters<typeof checkPreview>[2] & { readonly breakGlass: BreakGlass | null },
): Promise<PreviewCheck> {
  const check = await checkPreview(tx, rule, of);
  if (check.problem === null || rule.settings.mode !== 'refuse') return check;
  if (breakGlass === null) throw new PreviewNeededError(check.problem);
  breakGlass.rules.push(rule.id);
  return { ...check, problem: null };
}
