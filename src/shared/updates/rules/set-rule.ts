import type { Queryable } from '../../platform/db/sql.ts';
import { InvalidRequestError } from '../../platform/errors/errors.ts';
import { createUpdateRuleRepository } from './update-rule-repository.ts';
import type { NewRule } from './update-rules.ts';

/** Creating an update reads the rules of its organization. */
const maxRules = 500;

/**
 * Sets a rule and returns its id. The caller has taken `lockForChange`. `setBy` is the user; null: an operator. Throws
 * InvalidRequestError.
 */
export async function setRule(
  tx: Queryable,
  organizationId: string,
  rule: NewRule,
  setBy: string | null,
): Promise<string> {
  const rules = createUpdateRuleRepository(tx);
  const id = await rules.set(organizationId, rule, setBy);
  if ((await rules.count(organizationId)) > maxRules)
    throw new InvalidRequestError(`An organization can have at most ${maxRules} rules: delete one first`);
  return id;
}
