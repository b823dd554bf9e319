import type { Queryable } from '../../platform/db/sql.ts';
import { ConflictError } from '../../platform/errors/errors.ts';
import { formatStackRef } from '../../stacks/names.ts';
import { createConsumerRepository } from './consumer-repository.ts';
import type { StackWithRules } from './update-rule-repository.ts';

/** Another stack has begun to read outputs after their removal was admitted. */
export class NewConsumerError extends ConflictError {
  override readonly name = 'NewConsumerError';
  override readonly code = 'has-consumers';
}

/**
 * Repeats the check of the rule `consumers` for a locked stack. Throws NewConsumerError; the next call names the consumer to users who may
 * read it.
 */
export async function assertNotConsumedSince(tx: Queryable, stack: StackWithRules): Promise<void> {
  if (stack.updateRules.first('consumers')?.settings.mode !== 'refuse') return;
  const consumers = await createConsumerRepository(tx).listOwn(stack, 1);
  if (consumers.length > 0)
    throw new NewConsumerError(
      `Stack ${formatStackRef(stack)} is now read by another stack, and a rule protects it, so nothing was done: please retry to see which stack`,
    );
}
