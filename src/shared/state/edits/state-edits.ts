import { setTimeout as sleep } from 'node:timers/promises';
import { type Static, Type } from 'typebox';
import { type LockedRights, lockRights } from '../../identity/locked-rights.ts';
import type { Database } from '../../platform/db/database.ts';
import type { Queryable } from '../../platform/db/sql.ts';
import { ConflictError, ForbiddenError, NotFoundError, UnavailableError } from '../../platform/errors/errors.ts';
import { fromRejection, JobPendingError, type Outcome, toRejection } from '../../platform/errors/outcome.ts';
import { createOutcomeRepository } from '../../platform/outcomes/outcome-repository.ts';
import { createStackRepository, type StackRow } from '../../stacks/stack-repository.ts';
import { readTags } from '../../stacks/tags.ts';
import { assertThawed } from '../../updates/rules/freeze.ts';
import { assertSameRules, otherGrants, type RuledStack } from '../../updates/rules/rule-selection.ts';
import { createUpdateRuleRepository, type StackWithRules } from '../../updates/rules/update-rule-repository.ts';
import { StackBusyError } from '../../updates/update-errors.ts';
import { createDeadlineRepository } from './deadline-repository.ts';

/** How long a caller waits for Postgres to report the outcome of its change. */
const outcomeWaitMs = 5_000;
const outcomeRetryMs = 250;
const givenUpCode = 'given-up';

/** The state that a change replaces. Two states of a stack always differ in one of the fields. */
const StackHead = Type.Object({
  stackVersion: Type.Integer(),
  checkpointId: Type.Union([Type.String(), Type.Null()]),
});
export type StackHead = Readonly<Static<typeof StackHead>>;

/** `deadline` is that of the commit, an ISO time by the database's clock. */
export const Admission = Type.Object({ ...StackHead.properties, deadline: Type.String() });
export type Admission = Readonly<Static<typeof Admission>>;

/** A change to a stack's state outside an update, without a sequence number: an import or a rename. */
export interface StateEdit {
  readonly stackId: string;
  /** The update that records the change. Its id is chosen before the change is made. */
  readonly updateId: string;
  readonly admission: Admission;
  /** The requester's token or session, which must permit writes at the commit. Null for an operator. */
  readonly tokenId: string | null;
}

/**
 * Throws ForbiddenError unless the stack may get these names and tags: without the permission to manage it, the user must not change which
 * rules and grants apply. `before` is another stack whose place it takes, if any.
 */
export type AssertMayBecome = (next: RuledStack, before?: RuledStack) => Promise<void>;

export class StackChangedError extends ConflictError {
  override readonly name = 'StackChangedError';
  override readonly code = 'stack-changed';
  constructor() {
    super(
      'The stack was changed by someone else during this call, so nothing was done; please check its newest state before you retry',
    );
  }
}

/** The change is too late, or its caller was already told that it failed. */
class EditTimedOutError extends ConflictError {
  override readonly name = 'EditTimedOutError';
  override readonly code = givenUpCode;
  constructor() {
    super('This call took too long and was abandoned: nothing was changed. Please retry');
  }
}

const committed: Outcome = { result: 'committed' };
const givenUp: Outcome = {
  result: 'rejected',
  rejection: { code: givenUpCode, status: 409, message: new EditTimedOutError().message },
};

/**
 * Changes here have no sequence number that identifies late ones. They are committed only on the head for which they were admitted, only
 * before their deadline, and never after their caller was told that they failed.
 */
export class StateEdits {
  readonly #db: Database;
  readonly #waitSeconds: number;

  constructor(db: Database, waitSeconds: number) {
    this.#db = db;
    this.#waitSeconds = waitSeconds;
  }

  /** Throws NotFoundError, StackBusyError. */
  async findHead(stackId: string): Promise<StackHead> {
    const stack = await createStackRepository(this.#db).findById(stackId);
    if (!stack) throw stackGone();
    if (stack.activeUpdateId !== null) throw new StackBusyError();
    return { stackVersion: stack.stackVersion, checkpointId: stack.checkpointId };
  }

  async admit({ stackVersion, checkpointId }: StackHead): Promise<Admission> {
    const deadline = await createDeadlineRepository(this.#db).after(this.#waitSeconds);
    return { stackVersion, checkpointId, deadline: deadline.toISOString() };
  }

  /**
   * Whether an earlier run has committed the change. Throws like `commit` if it can no longer be committed. Call it before work that would
   * then be wasted.
   */
  async isCommitted(change: StateEdit): Promise<boolean> {
    if (await wasCommitted(this.#db, change)) return true;
    try {
      assertUnchanged(await createStackRepository(this.#db).findById(change.stackId), change.admission);
      return false;
    } catch (error) {
      // The other run may have changed the head between the two queries.
      if (await wasCommitted(this.#db, change)) return true;
      throw error;
    }
  }

  /**
   * Takes one transaction, with the stack's row and the requester's rights locked. Does nothing if an earlier run has committed it. Throws
   * StackChangedError, StackBusyError, FrozenError, EditTimedOutError, NotFoundError, ForbiddenError and the errors of `work`, without a
   * change.
   */
  async commit(
    change: StateEdit,
    work: (tx: Queryable, stack: StackWithRules, assertMayBecome: AssertMayBecome) => Promise<void>,
  ): Promise<void> {
    await this.#db.inTransaction(async (tx) => {
      const rights = await lockRightsOf(tx, change);
      const stack = assertFound(await createUpdateRuleRepository(tx).lockStack(change.stackId));
      // This check is reliable here: another run of the same change would hold the lock on the stack's row.
      if (await wasCommitted(tx, change)) return;
      assertUnchanged(stack, change.admission);
      const present = { project: stack.project, stack: stack.stack, tags: readTags(stack.tags) };
      if (rights && !rights.mayWrite(present)) throw rightsLost();
      if (rights) assertThawed(stack);
      await work(tx, stack, async (next, before = present) => {
        if (!rights) return;
        if (!rights.mayWrite(next)) throw rightsLost();
        const named = { ...stack, project: before.project, stack: before.stack };
        if (!rights.mayManage(before)) await assertSameRules(tx, named, before, next);
        if (!(await rights.mayBecome(stack.organizationId, before, next))) throw otherGrants(named);
      });
      // Last, so that giving up the change does not wait for the work, and the deadline is checked as late as possible.
      const { admission, updateId } = change;
      if (!(await createOutcomeRepository(tx).claim(updateId, committed, admission.deadline)))
        throw new EditTimedOutError();
    });
  }

  /**
   * Resolves if the change was committed nevertheless; otherwise throws the error for the caller and ensures that the change is never
   * committed. If Postgres is unavailable, the thrown error says that the outcome is unknown, and the change can still be committed until
   * its deadline.
   */
  async resolveFailure(updateId: string, error: unknown): Promise<void> {
    const outcome = await this.#giveUp(updateId);
    if (outcome === 'committed') return;
    if (outcome === 'unknown' && toRejection(error) === null) {
      throw new UnavailableError(
        'The database is not available, so it is not known whether this call succeeded; please retry if the stack shows that it did not',
        { cause: error, retryAfterSeconds: 5 },
      );
    }
    if (
      outcome === 'given up' &&
      (error instanceof JobPendingError || (error as { code?: unknown }).code === givenUpCode)
    ) {
      throw new UnavailableError('This call took too long and was abandoned: nothing was changed; please retry', {
        cause: error,
        retryAfterSeconds: 5,
      });
    }
    throw error;
  }

  async #giveUp(updateId: string): Promise<'committed' | 'given up' | 'unknown'> {
    const outcomes = createOutcomeRepository(this.#db);
    const deadline = performance.now() + outcomeWaitMs;
    for (;;) {
      try {
        if (await outcomes.claim(updateId, givenUp)) return 'given up';
        const outcome = await outcomes.find(updateId);
        return outcome?.result === 'committed' ? 'committed' : 'given up';
      } catch {
        if (performance.now() > deadline) return 'unknown';
        await sleep(outcomeRetryMs);
      }
    }
  }
}

/** Rights are locked before the stack, as everywhere. Null for an operator. */
async function lockRightsOf(tx: Queryable, { stackId, tokenId }: StateEdit): Promise<LockedRights | null> {
  if (tokenId === null) return null;
  const { organization } = assertFound(await createStackRepository(tx).findById(stackId));
  return lockRights(tx, tokenId, organization);
}

/** Throws EditTimedOutError. */
async function wasCommitted(db: Queryable, { updateId, admission }: StateEdit): Promise<boolean> {
  const outcome = await createOutcomeRepository(db).find(updateId);
  if (outcome?.result === 'committed') return true;
  if (outcome) throw fromRejection(outcome.rejection);
  if (await createDeadlineRepository(db).isPast(admission.deadline)) throw new EditTimedOutError();
  return false;
}

function assertFound<Stack extends StackRow>(stack: Stack | null): Stack {
  if (!stack) throw stackGone();
  return stack;
}

/** Throws NotFoundError, StackBusyError, StackChangedError. */
export function assertUnchanged(found: StackRow | null, head: StackHead): void {
  const stack = assertFound(found);
  if (stack.activeUpdateId !== null) throw new StackBusyError();
  if (stack.stackVersion !== head.stackVersion || stack.checkpointId !== head.checkpointId)
    throw new StackChangedError();
}

function rightsLost(): ForbiddenError {
  return new ForbiddenError('Nothing was changed: your write permission on this stack was revoked during the call');
}

function stackGone(): NotFoundError {
  return new NotFoundError('The stack was deleted meanwhile');
}
