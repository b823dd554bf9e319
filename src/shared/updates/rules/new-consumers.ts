import type { Queryable } from '../../platform/db/sql.ts';
import { ConflictError } from '../../platform/errors/errors.ts';
import { formatStackRef } from '../../stacks/names.ts';
import { createConsumerRepository } from './consumer-repository.ts';
import type { StackWithRules } from './update-rule-repository.ts';

/** Another stack has begun to read the outputs of a stack after the removal of these outputs was admitted. */
export class NewConsumerError extends ConflictError {
  override readonly name = 'NewConsumerError';
  override readonly code = 'has-consumers';
}

/**
 * Asserts again, for a locked stack, that no stack of the organization reads its outputs, if a rule of kind `consumers` forbids their
 * removal. Throws NewConsumerError; the next call names the consumer to users who may read it.
 */
export async function assertNotConsumedSince(tx: Queryable, stack: StackWithRules): Promise<void> {
  if (stack.updateRules.first('consumers')?.settings.mode !== 'refuse') return;
  const consumers = await createConsumerRepository(tx).listOwn(stack, 1);
  if (consumers.length > 0)
    throw new NewConsumerError(
      `Stack ${formatStackRef(stack)} is now read by another stack, and a rule protects it, so nothing was done: please retry to see which stack`,
    );
}
