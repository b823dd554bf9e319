import type { Queryable } from '../../platform/db/sql.ts';
import { InvalidRequestError } from '../../platform/errors/errors.ts';
import { slotOf } from './rule-kinds.ts';
import { createUpdateRuleRepository } from './update-rule-repository.ts';
import type { NewRule } from './update-rules.ts';

// Creating an update reads all rules of its organization, and so does each page of a stack.
const maxRules = 500;
const maxWindows = 100;
/** Maximum bytes of settings and notes. */
const maxBytes = 256 * 1024;
/** A call this soon after an equal one is a repetition. */
const repetitionSeconds = 60;

/**
 * For kinds whose rules are added to each other, returns an equal rule that the same user has just set, because a call may be repeated. The
 * caller has taken `lockForChange`. `setBy` is null for an operator. Throws InvalidRequestError.
 */
export async function setRule(
  tx: Queryable,
  organizationId: string,
  rule: NewRule,
  setBy: string | null,
): Promise<{ readonly id: string; readonly isRepeated: boolean }> {
  const rules = createUpdateRuleRepository(tx);
  const same =
    slotOf(rule.kind, rule.settings) === null
      ? await rules.findSame(organizationId, rule, { setBy, seconds: repetitionSeconds })
      : null;
  if (same !== null) return { id: same, isRepeated: true };
  const id = await rules.set(organizationId, rule, setBy);
  await assertRuleCount(tx, organizationId);
  return { id, isRepeated: false };
}

/** Throws InvalidRequestError. */
export async function assertRuleCount(tx: Queryable, organizationId: string): Promise<void> {
  const { bytes, count, windows } = await createUpdateRuleRepository(tx).measure(organizationId);
  if (count > maxRules)
    throw new InvalidRequestError(`An organization can have at most ${maxRules} rules: delete one first`);
  if (windows > maxWindows)
    throw new InvalidRequestError(
      `The freezes of an organization can have at most ${maxWindows} windows together, and these would be ${windows}: one window can begin at several times, as in "0 17 * * 1-5"`,
    );
  if (bytes > maxBytes)
    throw new InvalidRequestError(
      `The rules of an organization can have at most ${maxBytes} bytes of settings and notes together, and these would be ${bytes}: shorten some, or delete some`,
    );
}
