import { createIdentityRepository } from '../../shared/identity/identity-repository.ts';
import { roleIncludes } from '../../shared/identity/roles.ts';
import { assertNoFault, JournalFaultError } from '../../shared/journal/journal-fault.ts';
import { createJournalRepository } from '../../shared/journal/journal-repository.ts';
import { mintToken } from '../../shared/platform/crypto/secret-token.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { violatedConstraint } from '../../shared/platform/db/sqlstate.ts';
import {
  ConflictError,
  ForbiddenError,
  InvalidRequestError,
  NotFoundError,
  UnauthenticatedError,
} from '../../shared/platform/errors/errors.ts';
import { assertFieldSize } from '../../shared/platform/errors/field-size.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import { stackNotFound } from '../../shared/stacks/stack-errors.ts';
import { createStackRepository } from '../../shared/stacks/stack-repository.ts';
import { parseTags } from '../../shared/stacks/tags.ts';
import { reclaimStack } from '../../shared/states/reclaim-stack.ts';
import { StackBusyError } from '../../shared/updates/admitted-changes.ts';
import { describeLoss, isLeaseLoss, LeaseLostError } from '../../shared/updates/lease.ts';
import { noteEnded } from '../../shared/updates/lost-leases.ts';
import { endUpdate, lockUpdate } from '../../shared/updates/update-closer.ts';
import { createUpdateRepository } from '../../shared/updates/update-repository.ts';
import type { EndStatus, UpdateKind } from '../../shared/updates/update-state.ts';
import type { ApiContext } from '../api-context.ts';
import type { Caller, Dialect, Lease } from '../request.ts';
import { foldSoon } from './fold-soon.ts';
import { leaseTakenAway } from './lost-lease.ts';

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
   * its users expect them to run beside an update. Throws StackBusyError, JournalFaultError and QuotaReachedError.
   */
  async create(ref: StackRef, caller: Caller, dialect: Dialect, request: NewUpdateRequest): Promise<string> {
    const { config, db, quotas, stacks } = this.#context;
    // Everything else of the request is kept as JSON, in which these can be escaped.
    if (!request.message.isWellFormed() || request.message.includes('\0')) {
      throw new InvalidRequestError('metadata.message is not valid text: it contains a NUL or half a surrogate pair');
    }
    const { message } = request;
    const environment = JSON.stringify(request.environment);
    const settings = JSON.stringify(request.config);
    const program = JSON.stringify(request.program);
    const { maxFieldBytes } = config.limits;
    assertFieldSize('metadata.message', message, maxFieldBytes);
    assertFieldSize('metadata.environment', environment, maxFieldBytes);
    assertFieldSize('config', settings, maxFieldBytes);
    assertFieldSize('The program (name, runtime, main and description)', program, maxFieldBytes);
    const found = await stacks.find(ref);
    if (!found) throw stackNotFound(ref);
    const preview = request.kind === 'preview' || request.dryRun;
    const exclusive = !preview || dialect === 'contract';
    if (exclusive && found.activeUpdateId !== null) await this.settle(found.id, { admitsFault: preview });
    // What has grown too large is made smaller by destroying it.
    if (!preview && request.kind !== 'destroy') await quotas.assertMayKeepMore(ref.organization);
    const limits = await quotas.limitsOf(ref.organization);
    return db.inTransaction(async (tx) => {
      await this.#holdMember(tx, ref, caller);
      await quotas.assertMayAddUpdate(tx, { id: found.organizationId, name: ref.organization }, limits);
      const lockedStacks = createStackRepository(tx);
      const stack = await lockedStacks.lockById(found.id);
      if (!stack) throw stackNotFound(ref);
      if (exclusive && stack.activeUpdateId !== null) throw new StackBusyError();
      if (!preview) await assertNoFault(tx, stack.id);
      const id = await createUpdateRepository(tx)
        .insert({
          stackId: stack.id,
          kind: request.kind,
          dryRun: preview,
          exclusive,
          baseStackVersion: stack.stackVersion,
          message,
          environment,
          config: settings,
          program,
          requestedBy: caller.userId,
          tokenId: caller.tokenId,
          waitSeconds: Math.min(startWaitSeconds, config.leaseSeconds),
        })
        .catch((error: unknown) => {
          throw violatedConstraint(error) === 'updates_one_active_per_stack' ? new StackBusyError() : error;
        });
      if (exclusive) await lockedStacks.setActiveUpdate(stack.id, id);
      return id;
    });
  }

  /**
   * Starts the update and issues its lease, which ends with the caller's token. Throws ConflictError when it is started or over
   * already, and JournalFaultError; the update is cancelled then, so that it does not hold the stack in vain.
   */
  async start(
    ref: StackRef,
    updateId: string,
    caller: Caller,
    request: { tags: unknown; journalVersion: number },
  ): Promise<StartedUpdate> {
    try {
      return await this.#start(ref, updateId, caller, request);
    } catch (error) {
      if (error instanceof JournalFaultError) await this.#withdraw(updateId);
      throw error;
    }
  }

  async #start(
    ref: StackRef,
    updateId: string,
    caller: Caller,
    request: { tags: unknown; journalVersion: number },
  ): Promise<StartedUpdate> {
    const { config, db, metrics, updates } = this.#context;
    const found = await updates.findInStack(updateId, ref);
    if (!found) throw updateNotFound(updateId);
    const tags = request.tags === null || request.tags === undefined ? null : JSON.stringify(parseTags(request.tags));
    await this.settle(found.stackId, { admitsFault: found.dryRun });
    const lease = mintToken('lease-');
    const started = await db.inTransaction(async (tx) => {
      await this.#holdMember(tx, ref, caller);
      const locked = await lockUpdate(tx, updateId);
      if (!locked) throw updateNotFound(updateId);
      const { stack, update } = locked;
      if (update.status !== 'not started' || update.expired) {
        throw new ConflictError(
          update.status === 'running'
            ? 'This update is already running'
            : `This update has ended: ${
                isLeaseLoss(update.endReason)
                  ? describeLoss(update.endReason)
                  : update.expired
                    ? 'it was not started in time'
                    : update.status
              }`,
        );
      }
      if (!update.dryRun) await assertNoFault(tx, stack.id);
      if (tags !== null) await createStackRepository(tx).setTags(stack.id, tags);
      const writesState = update.exclusive && !update.dryRun;
      const journalVersion = writesState && this.#servesJournal(request.journalVersion) ? 1 : 0;
      const expiresAt = await createUpdateRepository(tx).start({
        id: updateId,
        leaseHash: lease.hash,
        leaseSeconds: config.leaseSeconds,
        tokenId: caller.tokenId,
        longestSeconds: config.updateSeconds,
        stackVersion: writesState ? stack.stackVersion + 1 : null,
        baseStackVersion: stack.stackVersion,
        journalVersion,
        checkpointId: stack.checkpointId,
      });
      if (journalVersion > 0) await createJournalRepository(tx).open(updateId);
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

  /** A place in the order in which full checkpoints of the update come in. */
  assignArrivalSequence(updateId: string): Promise<number> {
    return this.#context.updates.assignArrivalSequence(updateId);
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
    if (!expiresAt) throw await this.#leaseLost(lease);
    return expiresAt;
  }

  /**
   * Ends the update with the status given, its journal folded into a checkpoint before. The same call again, after it
   * succeeded, succeeds again. Throws LeaseLostError.
   */
  async complete(lease: Lease, status: EndStatus): Promise<void> {
    const { db, foldJournal, metrics, updates } = this.#context;
    for (let attempt = 1; attempt <= completeAttempts; attempt++) {
      const before = await updates.find(lease.updateId);
      if (!before) throw new LeaseLostError();
      if (before.status === 'running' && before.hasPendingEntries) await foldJournal(lease.updateId);
      const outcome = await db.inTransaction(async (tx) => {
        const locked = await lockUpdate(tx, lease.updateId);
        if (!locked || locked.update.epoch !== lease.epoch) throw new LeaseLostError();
        const { update } = locked;
        if (update.status === 'running' && update.expired) return 'expired';
        // More entries were accepted since the fold: fold again, or they would be missing from the version.
        if (update.status === 'running' && update.hasPendingEntries) return 'tail';
        const step = await endUpdate(tx, locked, { type: 'complete', status });
        if (step.outcome === 'lease-dead') throw new LeaseLostError();
        return step.outcome;
      });
      if (outcome === 'tail') continue;
      if (outcome === 'expired') throw await this.#leaseLost(lease);
      if (outcome === 'move') metrics.updatesEnded.labels(before.kind, status).inc();
      if (before.journalVersion > 0) await foldSoon(this.#context, before.id);
      return;
    }
    throw new ConflictError('Entries keep arriving while the update is being completed');
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
    if (found.journalVersion > 0) await foldSoon(this.#context, updateId);
  }

  /** Makes the stack ready for its next change: see reclaimStack. */
  async settle(stackId: string, options: { readonly admitsFault?: boolean } = {}): Promise<void> {
    const { compactor, config, db, foldJournal } = this.#context;
    const fold = (updateId: string): Promise<void> =>
      foldJournal(updateId).catch((error: unknown) => compactor.setAside(updateId, error));
    const ended = await reclaimStack(db, stackId, config.leaseSeconds, fold, options);
    if (ended && ended.reason !== 'lease-expired') noteEnded(this.#context, ended);
  }

  /** Lets nobody take the caller's rights away until the transaction has ended. Throws UnauthenticatedError, ForbiddenError. */
  async #holdMember(tx: Queryable, ref: StackRef, caller: Caller): Promise<void> {
    const role = await createIdentityRepository(tx).holdRole(caller.tokenId, ref.organization);
    if (role === null)
      throw new UnauthenticatedError('The API token, its user or the membership was removed meanwhile');
    if (!roleIncludes(role, 'member')) throw new ForbiddenError(`This needs the role member; you are now ${role}`);
  }

  /** Why a lease is dead that was let in a moment ago. */
  async #leaseLost(lease: Lease): Promise<LeaseLostError> {
    const update = await this.#context.updates.find(lease.updateId);
    if (!update || !isLeaseLoss(update.endReason)) return new LeaseLostError();
    return leaseTakenAway(this.#context, update, update.endReason);
  }

  async #withdraw(updateId: string): Promise<void> {
    await this.#context.db.inTransaction(async (tx) => {
      const locked = await lockUpdate(tx, updateId);
      if (locked?.update.status === 'not started') await endUpdate(tx, locked, { type: 'cancel' });
    });
  }

  #servesJournal(offered: number): boolean {
    const { checkpointMode } = this.#context.config;
    return offered === 1 && (checkpointMode === 'journal' || checkpointMode === 'auto');
  }
}

export function updateNotFound(updateId: string): NotFoundError {
  return new NotFoundError(`There is no update ${JSON.stringify(updateId.slice(0, 60))} in this stack`);
}
