import type { Queryable } from '../../shared/platform/db/sql.ts';
import { formatStackRef, type StackRef } from '../../shared/stacks/names.ts';
import { stackNotFound } from '../../shared/stacks/stack-errors.ts';
import { parseHoldReason } from '../../shared/stacks/stack-hold.ts';
import { createStackHoldRepository, type HoldRow } from '../../shared/stacks/stack-hold-repository.ts';
import { createStackRepository, type StackRow } from '../../shared/stacks/stack-repository.ts';
import { readTags } from '../../shared/stacks/tags.ts';
import { StateDeletedError } from '../../shared/state/retention/deleted-errors.ts';
import { createPinRepository } from '../../shared/state/retention/pin-repository.ts';
import { lockAccess } from '../access/locked-access.ts';
import { assertPermission } from '../access/stack-access.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import { findLastEdit } from '../platform/edits/last-edit.ts';
import { assertSeen, revisionOf, type SeenRevisions } from '../platform/edits/revisions.ts';
import type { Caller } from '../platform/http/request.ts';
import { noSuchVersion } from './no-such-version.ts';

/** Exemptions from the rules about retention. */
export class RetentionService {
  readonly #context: ApiContext;

  constructor(context: ApiContext) {
    this.#context = context;
  }

  async findHold(ref: StackRef): Promise<HoldRow | null> {
    const stack = await this.#context.stacks.find(ref);
    if (!stack) throw stackNotFound(ref);
    return createStackHoldRepository(this.#context.db).find(stack.id);
  }

  /** After the response, no data of the stack is deleted. `seen`: revisions of its hold. */
  async hold(
    caller: Caller,
    ref: StackRef,
    text: string,
    audit: AuditTrail,
    seen: SeenRevisions = null,
  ): Promise<void> {
    const reason = parseHoldReason(text);
    await this.#change(caller, ref, 'manage', async (tx, stack) => {
      const holds = createStackHoldRepository(tx);
      await assertSeenHold(tx, stack, await holds.find(stack.id), seen);
      await holds.set(stack.id, { by: authorOf(audit), reason });
      await audit.record(tx, recordOf(stack, { reason }));
    });
  }

  /** Does nothing without a hold. `seen`: revisions of the hold. */
  async release(caller: Caller, ref: StackRef, audit: AuditTrail, seen: SeenRevisions = null): Promise<void> {
    await this.#change(caller, ref, 'manage', async (tx, stack) => {
      const holds = createStackHoldRepository(tx);
      const hold = await holds.find(stack.id);
      if (!hold) return audit.settle();
      await assertSeenHold(tx, stack, hold, seen);
      await holds.release(stack.id);
      await audit.record(tx, recordOf(stack, { reason: hold.reason, heldAt: hold.heldAt.toISOString() }));
    });
  }

  async pin(caller: Caller, ref: StackRef, stackVersion: number, isPinned: boolean, audit: AuditTrail): Promise<void> {
    await this.#change(caller, ref, 'write', async (tx, stack) => {
      const by = isPinned ? authorOf(audit) : null;
      const found = await createPinRepository(tx).set(stack.id, stackVersion, by);
      if (!found) throw noSuchVersion(stackVersion);
      if (found.isDeleted) throw new StateDeletedError(stackVersion);
      if (!found.isChanged) return audit.settle();
      await audit.record(tx, recordOf(stack, { version: stackVersion }));
    });
  }

  async #change(
    caller: Caller,
    ref: StackRef,
    permission: 'manage' | 'write',
    work: (tx: Queryable, stack: StackRow) => Promise<void>,
  ): Promise<void> {
    await this.#context.db.inTransaction(async (tx) => {
      const access = await lockAccess(tx, ref.organization, caller);
      const stack = await createStackRepository(tx).lock(ref);
      if (!stack) throw stackNotFound(ref);
      assertPermission(access, stack, readTags(stack.tags), permission);
      await work(tx, stack);
    });
  }
}

/** Null: the stack has no hold. */
export function revisionOfHold(hold: HoldRow | null): string {
  return hold === null ? '' : revisionOf({ at: hold.heldAt.toISOString(), by: hold.heldBy, reason: hold.reason });
}

function assertSeenHold(tx: Queryable, stack: StackRow, hold: HoldRow | null, seen: SeenRevisions): Promise<void> {
  return assertSeen(seen, revisionOfHold(hold), 'the legal hold', () =>
    findLastEdit(tx, stack.organizationId, 'stack.hold', ({ object }) => object === formatStackRef(stack)),
  );
}

function authorOf({ source: { login, tokenName } }: AuditTrail): string {
  return login ?? tokenName ?? '';
}

function recordOf(stack: StackRow, details: object) {
  return {
    organization: stack.organization,
    object: formatStackRef(stack),
    details: { stackId: stack.id, ...details },
  };
}
