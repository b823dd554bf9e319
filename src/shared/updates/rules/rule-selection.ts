import type { Queryable } from '../../platform/db/sql.ts';
import { ForbiddenError } from '../../platform/errors/errors.ts';
import { formatStackRef, type StackRef } from '../../stacks/names.ts';
import type { Tags } from '../../stacks/tags.ts';
import { createUpdateRuleRepository } from './update-rule-repository.ts';
import { describeScope } from './update-rules.ts';

const maxNamed = 3;

/** Rules and grants select a stack by these properties. */
export interface RuledStack {
  readonly project: string;
  readonly stack: string;
  readonly tags: Tags;
}

/**
 * Throws ForbiddenError if a rule would begin or cease to apply. In a transaction that began with `lockAccess`, the rules do not change
 * until its end.
 */
export async function assertSameRules(
  tx: Queryable,
  { organization, organizationId, ...names }: StackRef & { readonly organizationId: string },
  present: RuledStack,
  next: RuledStack,
): Promise<void> {
  const rules = createUpdateRuleRepository(tx);
  const before = await rules.listForNames(organizationId, present);
  const changed = before.difference(await rules.listForNames(organizationId, next));
  if (changed.length === 0) return;
  const named = changed.slice(0, maxNamed).map((rule) => {
    const note = rule.note === '' ? '' : ` (${rule.note})`;
    return `${rule.kind} of ${describeScope(rule, organization)}${note}`;
  });
  const more = changed.length > maxNamed ? ` and ${changed.length - maxNamed} more` : '';
  throw new ForbiddenError(
    `This would change which rules stack ${formatStackRef({ organization, ...names })} has: ${named.join(', ')}${more}. ${needsManage}`,
  );
}

/** Other grants would apply to the stack. The refusal does not name them, because only admins may read grants. */
export function otherGrants(stack: StackRef): ForbiddenError {
  return new ForbiddenError(
    `This would change which grants apply to stack ${formatStackRef(stack)}, or which scopes of tokens, and thus who may do what with it. ${needsManage}`,
  );
}

const needsManage = 'That needs the permission manage on the stack: ask an admin of the organization to do it';
