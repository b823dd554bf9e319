import { setTimeout as sleep } from 'node:timers/promises';
import { type Static, Type } from 'typebox';
import type { Database } from '../platform/db/database.ts';
import type { Queryable } from '../platform/db/sql.ts';
import { ConflictError, NotFoundError, UnavailableError } from '../platform/errors/errors.ts';
import { fromRejection, JobPendingError, type Outcome, toRejection } from '../platform/errors/outcome.ts';
import { createStackRepository, type StackRow } from '../stacks/stack-repository.ts';
import { type ChangeOutcomeRepository, createChangeOutcomeRepository } from './change-outcome-repository.ts';

/** For how long a caller is kept waiting for Postgres to say what became of its change, in ms. */
const askLimitMs = 5_000;
const askPauseMs = 250;
const givenUpCode = 'given-up';

/** Which state of a stack a change replaces: no two states of a stack have both in common. */
const StackHead = Type.Object({
  stackVersion: Type.Integer(),
  checkpointId: Type.Union([Type.String(), Type.Null()]),
});
export type StackHead = Readonly<Static<typeof StackHead>>;

/** The head, and until when the change may be committed: ISO time, by the database's clock. */
export const Admission = Type.Object({ ...StackHead.properties, deadline: Type.String() });
export type Admission = Readonly<Static<typeof Admission>>;

/** A change of a stack's state outside of an update, which has no sequence number: an import or a rename. */
export interface AdmittedChange {
  readonly stackId: string;
  /** Chosen before the change is made: that of the update which records it. */
  readonly updateId: string;
  readonly admission: Admission;
}

/** Another update holds the stack. The SDKs look for the first sentence, to the letter (sdk/go/auto/errors.go). */
export class StackBusyError extends ConflictError {
  override readonly name = 'StackBusyError';
  override readonly code = 'stack-busy';
  constructor() {
    super('Conflict: Another update is currently in progress. Wait until it ends, or end it with `pulumi cancel`');
  }
}

/** The stack is no longer as it was when the change was admitted. */
export class StackChangedError extends ConflictError {
  override readonly name = 'StackChangedError';
  override readonly code = 'stack-changed';
  constructor() {
    super(
      'The stack was changed by someone else during this call, so nothing was done; please check its newest state before you retry',
    );
  }
}

/** The change came too late, or its caller was told already that it is not made. */
export class ChangeGivenUpError extends ConflictError {
  override readonly name = 'ChangeGivenUpError';
  override readonly code = givenUpCode;
  constructor() {
    super('This call took too long and was abandoned: nothing was changed. Please retry');
  }
}

const committed: Outcome = { result: 'committed' };
const givenUp: Outcome = {
  result: 'rejected',
  rejection: { code: givenUpCode, status: 409, message: new ChangeGivenUpError().message },
};

/**
 * Commits changes that have no sequence number by which a late one could be told: only over the head that they were admitted
 * against, only before their deadline, and never after their caller was told that they failed.
 */
export class AdmittedChanges {
  readonly #db: Database;
  readonly #waitSeconds: number;

  constructor(db: Database, waitSeconds: number) {
    this.#db = db;
    this.#waitSeconds = waitSeconds;
  }

  /** The head that a change replaces which comes now. Throws NotFoundError, StackBusyError. */
  async findHead(stackId: string): Promise<StackHead> {
    const stack = await createStackRepository(this.#db).findById(stackId);
    if (!stack) throw stackGone();
    if (stack.activeUpdateId !== null) throw new StackBusyError();
    return { stackVersion: stack.stackVersion, checkpointId: stack.checkpointId };
  }

  /** Admits a change of that head from now on, for as long as its caller waits. */
  async admit({ stackVersion, checkpointId }: StackHead): Promise<Admission> {
    const deadline = await createChangeOutcomeRepository(this.#db).timeIn(this.#waitSeconds);
    return { stackVersion, checkpointId, deadline: deadline.toISOString() };
  }

  /**
   * True when an earlier run has committed the change. Throws as `commit` does when it can no longer be committed: to be asked
   * before work that would be in vain.
   */
  async isCommitted(change: AdmittedChange): Promise<boolean> {
    const outcomes = createChangeOutcomeRepository(this.#db);
    if (await wasCommitted(outcomes, change)) return true;
    try {
      assertUnchanged(await createStackRepository(this.#db).findById(change.stackId), change.admission);
      return false;
    } catch (error) {
      // The other run may have changed the head between the two questions.
      if (await wasCommitted(outcomes, change)) return true;
      throw error;
    }
  }

  /**
   * Makes the change in one transaction, with the stack's row locked; does nothing when an earlier run has committed it. Throws
   * StackChangedError, StackBusyError, ChangeGivenUpError, NotFoundError and what `work` throws; nothing is changed then.
   */
  async commit(change: AdmittedChange, work: (tx: Queryable, stack: StackRow) => Promise<void>): Promise<void> {
    await this.#db.inTransaction(async (tx) => {
      const stack = assertFound(await createStackRepository(tx).lockById(change.stackId));
      const outcomes = createChangeOutcomeRepository(tx);
      // Another run of the same change would hold the stack's row.
      if (await wasCommitted(outcomes, change)) return;
      assertUnchanged(stack, change.admission);
      await work(tx, stack);
      // Last, so that whoever gives the change up does not wait for the work, and the deadline is asked for as late as can be.
      if (!(await outcomes.claim(change.updateId, committed, change.admission.deadline)))
        throw new ChangeGivenUpError();
    });
  }

  /**
   * What the caller of a change that ended in `error` is to be told. Resolves when the change is committed nevertheless;
   * otherwise throws, and it never will be. Only while Postgres cannot be asked that is left open, and said so: then the
   * deadline ends it.
   */
  async resolveFailure(updateId: string, error: unknown): Promise<void> {
    const fate = await this.#giveUp(updateId);
    if (fate === 'committed') return;
    if (fate === 'unknown' && toRejection(error) === null) {
      throw new UnavailableError(
        'The database is not available, so it is not known whether this call succeeded; please retry if the stack shows that it did not',
        { cause: error, retryAfterSeconds: 5 },
      );
    }
    if (
      fate === 'given up' &&
      (error instanceof JobPendingError || (error as { code?: unknown }).code === givenUpCode)
    ) {
      throw new UnavailableError('This call took too long and was abandoned: nothing was changed; please retry', {
        cause: error,
        retryAfterSeconds: 5,
      });
    }
    throw error;
  }

  /** Sees that the change is not committed any more, unless it is. */
  async #giveUp(updateId: string): Promise<'committed' | 'given up' | 'unknown'> {
    const outcomes = createChangeOutcomeRepository(this.#db);
    const limit = performance.now() + askLimitMs;
    for (;;) {
      try {
        if (await outcomes.claim(updateId, givenUp)) return 'given up';
        const outcome = await outcomes.find(updateId);
        return outcome?.result === 'committed' ? 'committed' : 'given up';
      } catch {
        if (performance.now() > limit) return 'unknown';
        await sleep(askPauseMs);
      }
    }
  }
}

/** Throws ChangeGivenUpError. */
async function wasCommitted(
  outcomes: ChangeOutcomeRepository,
  { updateId, admission }: AdmittedChange,
): Promise<boolean> {
  const outcome = await outcomes.find(updateId);
  if (outcome?.result === 'committed') return true;
  if (outcome) throw fromRejection(outcome.rejection);
  if (await outcomes.isPast(admission.deadline)) throw new ChangeGivenUpError();
  return false;
}

function assertFound(stack: StackRow | null): StackRow {
  if (!stack) throw stackGone();
  return stack;
}

function assertUnchanged(found: StackRow | null, head: StackHead): void {
  const stack = assertFound(found);
  if (stack.activeUpdateId !== null) throw new StackBusyError();
  if (stack.stackVersion !== head.stackVersion || stack.checkpointId !== head.checkpointId)
    throw new StackChangedError();
}

function stackGone(): NotFoundError {
  return new NotFoundError('The stack was deleted meanwhile');
}
