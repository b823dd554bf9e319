import { StackBusyError } from '../../shared/checkpoints/deployment-importer.ts';
import { mintToken } from '../../shared/platform/crypto/secret-token.ts';
import { violatedConstraint } from '../../shared/platform/db/sqlstate.ts';
import { ConflictError, InvalidRequestError, NotFoundError } from '../../shared/platform/errors/errors.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import { createStackRepository } from '../../shared/stacks/stack-repository.ts';
import { parseTags } from '../../shared/stacks/tags.ts';
import { LeaseLostError } from '../../shared/updates/lease.ts';
import { endUpdate, lockUpdate, settleStack } from '../../shared/updates/update-closer.ts';
import { createUpdateRepository } from '../../shared/updates/update-repository.ts';
import type { EndStatus, UpdateKind } from '../../shared/updates/update-state.ts';
import type { ApiContext } from '../api-context.ts';
import type { Caller, Dialect, Lease } from '../request.ts';
import { stackNotFound } from '../stacks/stack-errors.ts';

/** How long a created update may wait for its start, in seconds, and never longer than a lease: the CLI starts it at once. */
const startWaitSeconds = 300;
const completeAttempts = 5;

export interface NewUpdateRequest {
  readonly kind: Extract<UpdateKind, 'update' | 'preview' | 'refresh' | 'destroy'>;
  readonly dryRun: boolean;
  readonly message: string;
  readonly environment: object;
  readonly config: object;
  readonly program: object;
}

export interface StartedUpdate {
  readonly token: string;
  readonly expiresAt: Date;
  /** The version that this update will own; the stack's current one for previews. */
  readonly stackVersion: number;
  /** The version that it starts from. */
  readonly baseStackVersion: number;
  readonly journalVersion: number;
}

/** The life of updates, from create to complete. Each step is one short transaction. */
export class UpdateService {
  readonly #context: ApiContext;

  constructor(context: ApiContext) {
    this.#context = context;
  }

  /**
   * Creates an update that waits for its start, and takes the stack's lock for it. Previews of the CLI's dialect take none:
   * its users expect them to run beside an update. Throws StackBusyError.
   */
  async create(ref: StackRef, caller: Caller, dialect: Dialect, request: NewUpdateRequest): Promise<string> {
    const { config, db, stacks } = this.#context;
    // Everything else of the request is kept as JSON, in which these can be escaped.
    if (!request.message.isWellFormed() || request.message.includes('\0')) {
      throw new InvalidRequestError('metadata.message is not text: it has a NUL or half a surrogate pair');
    }
    const found = await stacks.find(ref);
    if (!found) throw stackNotFound(ref);
    const preview = request.kind === 'preview' || request.dryRun;
    const exclusive = !preview || dialect === 'contract';
    if (exclusive && found.activeUpdateId !== null) await this.settle(found.id);
    return db.inTransaction(async (tx) => {
      const lockedStacks = createStackRepository(tx);
      const stack = await lockedStacks.lockById(found.id);
      if (!stack) throw stackNotFound(ref);
      if (exclusive && stack.activeUpdateId !== null) throw new StackBusyError();
      const id = await createUpdateRepository(tx)
        .insert({
          stackId: stack.id,
          kind: request.kind,
          dryRun: preview,
          exclusive,
          baseStackVersion: stack.stackVersion,
          message: request.message,
          environment: JSON.stringify(request.environment),
          config: JSON.stringify(request.config),
          program: JSON.stringify(request.program),
          requestedBy: caller.userId,
          waitSeconds: Math.min(startWaitSeconds, config.leaseSeconds),
        })
        .catch((error: unknown) => {
          throw violatedConstraint(error) === 'updates_one_active_per_stack' ? new StackBusyError() : error;
        });
      if (exclusive) await lockedStacks.setActiveUpdate(stack.id, id);
      return id;
    });
  }

  /** Starts the update and issues its lease. Throws ConflictError when it is started or over already. */
  async start(
    ref: StackRef,
    updateId: string,
    request: { tags: unknown; journalVersion: number },
  ): Promise<StartedUpdate> {
    const { config, db, metrics, updates } = this.#context;
    const found = await updates.findInStack(updateId, ref);
    if (!found) throw updateNotFound(updateId);
    const tags = request.tags === null || request.tags === undefined ? null : JSON.stringify(parseTags(request.tags));
    await this.settle(found.stackId);
    const lease = mintToken('lease-');
    const started = await db.inTransaction(async (tx) => {
      const locked = await lockUpdate(tx, updateId);
      if (!locked) throw updateNotFound(updateId);
      const { stack, update } = locked;
      if (update.status !== 'not started' || update.expired) {
        throw new ConflictError(
          update.status === 'running'
            ? 'This update is running already'
            : `This update is over: ${update.expired ? 'it was not started in time' : update.status}`,
        );
      }
      if (tags !== null) await createStackRepository(tx).setTags(stack.id, tags);
      const writesState = update.exclusive && !update.dryRun;
      const journalVersion = writesState && this.#servesJournal(request.journalVersion) ? 1 : 0;
      const expiresAt = await createUpdateRepository(tx).start({
        id: updateId,
        leaseHash: lease.hash,
        leaseSeconds: config.leaseSeconds,
        stackVersion: writesState ? stack.stackVersion + 1 : null,
        baseStackVersion: stack.stackVersion,
        journalVersion,
        checkpointId: stack.checkpointId,
      });
      return {
        token: lease.token,
        expiresAt,
        stackVersion: stack.stackVersion + (writesState ? 1 : 0),
        baseStackVersion: stack.stackVersion,
        journalVersion,
      };
    });
    metrics.updatesStarted.labels(found.kind).inc();
    return started;
  }

  /** Extends the lease by `seconds`, at most the configured life. Throws LeaseLostError. */
  async renew(lease: Lease, seconds: number | null): Promise<Date> {
    const { config, updates } = this.#context;
    if (seconds !== null && seconds < 1) throw new InvalidRequestError('duration must be at least 1 second');
    const expiresAt = await updates.renewLease(
      lease.updateId,
      lease.epoch,
      Math.min(seconds ?? config.leaseSeconds, config.leaseSeconds),
    );
    if (!expiresAt) throw new LeaseLostError();
    return expiresAt;
  }

  /**
   * Ends the update with the status given, its journal folded into a checkpoint before. The same call again, after it
   * succeeded, succeeds again. Throws LeaseLostError.
   */
  async complete(lease: Lease, status: EndStatus): Promise<void> {
    const { db, dispatcher, metrics, updates } = this.#context;
    for (let attempt = 1; attempt <= completeAttempts; attempt++) {
      const before = await updates.find(lease.updateId);
      if (!before) throw new LeaseLostError();
      if (before.status === 'running' && before.hasTail) {
        await dispatcher.run({ name: 'fold-journal', schema: 1, updateId: lease.updateId });
      }
      const outcome = await db.inTransaction(async (tx) => {
        const locked = await lockUpdate(tx, lease.updateId);
        if (!locked || locked.update.epoch !== lease.epoch) throw new LeaseLostError();
        const { update } = locked;
        if (update.status === 'running' && update.expired) throw new LeaseLostError();
        // More entries were accepted since the fold: fold again, or they would be missing from the version.
        if (update.status === 'running' && update.hasTail) return 'tail';
        const step = await endUpdate(tx, locked, { type: 'complete', status });
        if (step.outcome === 'lease-dead' || step.outcome === 'conflict') throw new LeaseLostError();
        return step.outcome;
      });
      if (outcome === 'tail') continue;
      if (outcome === 'move') metrics.updatesEnded.labels(before.kind, status).inc();
      if (before.journalVersion > 0) await this.#foldSoon(before.id);
      return;
    }
    throw new ConflictError('Entries keep coming while the update is completed');
  }

  /** Cancels the update; success also when it is over already. What it has written is kept. */
  async cancel(ref: StackRef, updateId: string): Promise<void> {
    const { db, metrics, updates } = this.#context;
    const found = await updates.findInStack(updateId, ref);
    if (!found) throw updateNotFound(updateId);
    const step = await db.inTransaction(async (tx) => {
      const locked = await lockUpdate(tx, updateId);
      if (!locked) throw updateNotFound(updateId);
      return endUpdate(tx, locked, { type: 'cancel' });
    });
    if (step.outcome === 'move') metrics.updatesEnded.labels(found.kind, 'cancelled').inc();
    if (found.journalVersion > 0) await this.#foldSoon(updateId);
  }

  /** Makes the stack ready for its next change: see settleStack. */
  settle(stackId: string): Promise<void> {
    const { config, db, dispatcher } = this.#context;
    const fold = (updateId: string): Promise<void> => dispatcher.run({ name: 'fold-journal', schema: 1, updateId });
    return settleStack(db, stackId, config.leaseSeconds, fold);
  }

  /** What is committed stays so when the queue is away: the sweep finds the journal, too. */
  async #foldSoon(updateId: string): Promise<void> {
    try {
      await this.#context.dispatcher.enqueue({ name: 'fold-journal', schema: 1, updateId });
    } catch (error) {
      this.#context.logger.warn({ updateId, err: error }, 'journal left to the sweep');
    }
  }

  #servesJournal(offered: number): boolean {
    const { checkpointMode } = this.#context.config;
    return offered === 1 && (checkpointMode === 'journal' || checkpointMode === 'auto');
  }
}

export function updateNotFound(updateId: string): NotFoundError {
  return new NotFoundError(`There is no update ${JSON.stringify(updateId.slice(0, 60))} in this stack`);
}
