import { InvalidRequestError, NotFoundError } from '../../../shared/platform/errors/errors.ts';
import { formatStackRef, type StackRef } from '../../../shared/stacks/names.ts';
import { stackNotFound } from '../../../shared/stacks/stack-errors.ts';
import { createStackRepository } from '../../../shared/stacks/stack-repository.ts';
import { readTags } from '../../../shared/stacks/tags.ts';
import { createUpdateQueueRepository } from '../../../shared/updates/update-queue-repository.ts';
import { lockAccess } from '../../access/locked-access.ts';
import { assertPermission } from '../../access/stack-access.ts';
import type { ApiContext } from '../../platform/api-context.ts';
import type { AuditTrail } from '../../platform/audit-trail/audit-trail.ts';
import type { Caller } from '../../platform/http/request.ts';

export class QueueService {
  readonly #db: ApiContext['db'];

  constructor({ db }: Pick<ApiContext, 'db'>) {
    this.#db = db;
  }

  /** Removes a run from the queue; its call is refused. */
  async evict(
    ref: StackRef,
    caller: Caller,
    { placeId, reason }: { readonly placeId: string; readonly reason: string },
    audit: AuditTrail,
  ): Promise<void> {
    // The reason becomes part of a line of terminal output.
    if (/\p{Cc}/u.test(reason) || !reason.isWellFormed())
      throw new InvalidRequestError('The reason must be one line of text');
    await this.#db.inTransaction(async (tx) => {
      const access = await lockAccess(tx, ref.organization, caller);
      const stack = await createStackRepository(tx).lock(ref);
      if (!stack) throw stackNotFound(ref);
      assertPermission(access, stack, readTags(stack.tags), 'write');
      const isGone = await createUpdateQueueRepository(tx).evict(placeId, stack.id, { login: caller.login, reason });
      if (!isGone) throw new NotFoundError('The update is no longer in the queue');
      const details = { stackId: stack.id, placeId, reason };
      await audit.record(tx, { organization: ref.organization, object: formatStackRef(stack), details });
    });
  }
}
