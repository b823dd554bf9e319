import { createIdentityRepository } from '../../shared/identity/identity-repository.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { InvalidRequestError } from '../../shared/platform/errors/errors.ts';
import { isUuid } from '../../shared/platform/schema/uuid.ts';
import { deletedStackNotFound } from '../../shared/stacks/deleted-stack-errors.ts';
import { formatStackRef, type StackRef } from '../../shared/stacks/names.ts';
import {
  createRestorableStackRepository,
  type DeletedStackPosition,
  type RestorableStackRow,
} from '../../shared/stacks/restorable-stack-repository.ts';
import { DeletedStackRestorer } from '../../shared/state/deleted-stack-restorer.ts';
import { lockManagement } from '../access/locked-access.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import type { Caller } from '../platform/http/request.ts';

/** Null: as before. */
export interface RestoredName {
  readonly project: string | null;
  readonly stack: string | null;
}

export class DeletedStacks {
  readonly #context: ApiContext;
  readonly #restorer: DeletedStackRestorer;

  constructor(context: ApiContext) {
    this.#context = context;
    this.#restorer = new DeletedStackRestorer(context);
  }

  /** The last deleted first. */
  async list(organization: string, continuation: string | null, limit: number) {
    const before = continuation === null ? null : readPosition(continuation);
    const rows = await createRestorableStackRepository(this.#context.db).list(organization, before, limit + 1);
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    return {
      items: page.map(stackView),
      next: last && rows.length > limit ? `${last.deletedMicros}.${last.id}` : null,
    };
  }

  /**
   * Throws NotFoundError, ForbiddenError, StackPurgedError, NameTakenError, QuotaReachedError and InvalidRequestError; nothing is changed
   * if it throws.
   */
  async restore(
    caller: Caller,
    { id, organization }: { readonly organization: string; readonly id: string },
    { project, stack }: RestoredName,
    audit: AuditTrail,
  ): Promise<StackRef> {
    if (!isUuid(id)) throw deletedStackNotFound();
    const { quotas } = this.#context;
    const limits = await quotas.limitsOf(organization);
    return this.#restorer.restore(
      { organization, id, project, stack, requestedBy: caller.userId },
      {
        hold: async (tx) => {
          await lockManagement(tx, organization, caller);
          const found = await createIdentityRepository(tx).findOrganization(organization);
          if (found) await quotas.assertMayAddStack(tx, { id: found.id, name: organization }, limits);
        },
        record: async (tx, from, to) => {
          // Last, because the name of the restored stack may have to wait for other transactions.
          await quotas.assertMayKeepStack(tx, { id: from.organizationId, name: organization }, limits);
          const details = { stackId: from.id, deletedAt: from.deletedAt.toISOString(), to: formatStackRef(to) };
          return audit.record(tx, { organization, object: formatStackRef(from), details });
        },
      },
    );
  }

  /** Ends the time in which the stack can be restored. */
  async purge(
    caller: Caller,
    { id, organization }: { readonly organization: string; readonly id: string },
    audit: AuditTrail,
  ): Promise<void> {
    if (!isUuid(id)) throw deletedStackNotFound();
    await this.#restorer.purge(
      { organization, id },
      {
        hold: (tx: Queryable) => lockManagement(tx, organization, caller),
        record: (tx, from) =>
          audit.record(tx, { organization, object: formatStackRef(from), details: { stackId: id } }),
      },
    );
  }
}

function readPosition(continuation: string): DeletedStackPosition {
  const [deletedMicros = '', id = '', ...rest] = continuation.split('.');
  if (!/^\d{1,17}$/.test(deletedMicros) || !isUuid(id) || rest.length > 0)
    throw new InvalidRequestError('The continuationToken was not returned by the list');
  return { deletedMicros, id };
}

/** Times are ISO strings. */
function stackView(row: RestorableStackRow) {
  return {
    ...{ id: row.id, project: row.project, stack: row.stack, version: row.stackVersion },
    resourceCount: row.resourceCount,
    deletedAt: row.deletedAt.toISOString(),
    deletedBy: row.deletedBy,
    restorableUntil: row.restorableUntil?.toISOString() ?? row.deletedAt.toISOString(),
    /** A restore then needs a new name. */
    isNameTaken: row.isNameTaken,
    /** A legal hold prevents the final deletion. */
    isHeld: row.isHeld,
  };
}
