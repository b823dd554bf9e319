import { formatStackRef, type StackRef } from '../../shared/stacks/names.ts';
import { readTags } from '../../shared/stacks/tags.ts';
import { drainUpdate } from '../../shared/state/journal/change-limits/drain-update.ts';
import { lockUpdate } from '../../shared/updates/cancel-or-expire.ts';
import { parseReason } from '../../shared/updates/reason.ts';
import { lockAccess } from '../access/locked-access.ts';
import { assertPermission } from '../access/stack-access.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import type { Caller } from '../platform/http/request.ts';
import { updateNotFound } from './update-not-found.ts';

export class DrainService {
  readonly #context: ApiContext;

  constructor(context: ApiContext) {
    this.#context = context;
  }

  /** Drains a running update: it starts no new steps. Succeeds if it is already drained. */
  async drain(ref: StackRef, updateId: string, caller: Caller, reason: string, audit: AuditTrail): Promise<void> {
    const { db, updates } = this.#context;
    const drain = { by: caller.login, reason: parseReason(reason) };
    if (!(await updates.findNamed(updateId, ref))) throw updateNotFound(updateId);
    await db.inTransaction(async (tx) => {
      const access = await lockAccess(tx, ref.organization, caller);
      const locked = await lockUpdate(tx, updateId);
      if (!locked) throw updateNotFound(updateId);
      assertPermission(access, locked.stack, readTags(locked.stack.tags), 'write');
      if (!(await drainUpdate(tx, locked, drain))) return audit.settle();
      const details = { stackId: locked.stack.id, kind: locked.update.kind, reason: drain.reason };
      await audit.record(tx, {
        organization: ref.organization,
        object: formatStackRef(locked.stack),
        updateId,
        details,
      });
    });
  }
}
