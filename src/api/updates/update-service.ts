import { setTimeout as sleep } from 'node:timers/promises';
import { hashToken } from '../../shared/platform/crypto/secret-token.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { isLockTimeout, isOutage } from '../../shared/platform/db/sqlstate.ts';
import { ConflictError, InvalidRequestError, UnavailableError } from '../../shared/platform/errors/errors.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import type { StackRow } from '../../shared/stacks/stack-repository.ts';
import { readTags } from '../../shared/stacks/tags.ts';
import { JournalGapError } from '../../shared/state/journal/journal-fault.ts';
import { type ReclaimOptions, reclaimStack } from '../../shared/state/reclaim-stack.ts';
import { cancelUpdate, lockUpdate } from '../../shared/updates/cancel-or-expire.ts';
import { describeUnknown, isLeaseLoss, LeaseLostError } from '../../shared/updates/lease-loss.ts';
import { type Completion, createLockedUpdateRepository } from '../../shared/updates/locked-update-repository.ts';
import { checkForRollback } from '../../shared/updates/rollback-detection/rollback-monitor.ts';
import { type EndStatus, permissionOfUpdate } from '../../shared/updates/update-state.ts';
import { lockAccess } from '../access/locked-access.ts';
import { assertPermission } from '../access/stack-access.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import type { Caller, Dialect, Lease } from '../platform/http/request.ts';
import { compactRunning, compactSoon } from './compaction-calls.ts';
import type { NewUpdateRequest } from './new-update-request.ts';
import { findOutputLosses, type OutputLosses, recordOutputLosses } from './output-losses.ts';
import { revokedLeaseError } from './revoked-lease-error.ts';
import { LimitsBusyError, LimitsChangedError } from './rules/rule-checks.ts';
import { type CreatedUpdate, type PreparedCreation, prepareCreation } from './update-creation.ts';
import { updateNotFound } from './update-not-found.ts';
import { mintLease, prepareStart, type StartedUpdate, type StartRequest } from './update-start.ts';
import { endOf, reasonToWithdraw, type Withdrawal, type WithdrawReason, withdrawUpdate } from './withdraw-update.ts';

const maxCompleteAttempts = 5;
/** The server tries to end an abandoned update for this long while the database is not available: otherwise the update expires later. */
const withdrawMs = 60_000;
const withdrawRetryMs = 1_000;
/** The pause between attempts while the stack is locked. */
const lockedRetryMs = 200;

/** The lifecycle of updates, from creation to completion. Each step is one short transaction. */
export class UpdateService {
  readonly #context: ApiContext;

  constructor(context: ApiContext) {
    this.#context = context;
  }

  prepare(
    ref: StackRef,
    caller: Caller,
    dialect: Dialect,
    request: NewUpdateRequest,
    entryId: string | null,
  ): Promise<PreparedCreation> {
    return prepareCreation(this.#context, { ref, caller, dialect, request, entryId }, this.reclaim.bind(this));
  }

  /**
   * Creates an update that waits to be started, and locks the stack for it. Previews in the CLI's dialect do not lock: users expect them to
   * run alongside an update. Throws the errors of `checkCandidate`, and InvalidRequestError once its client is `gone`; no update exists if
   * it throws.
   */
  async create(
    creation: PreparedCreation,
    audit: AuditTrail,
    { entryId, gone }: { readonly entryId?: string; readonly gone: AbortSignal },
  ): Promise<CreatedUpdate> {
    // As long as one statement could wait for the lock.
    const until = performance.now() + this.#context.config.database.statementTimeoutMs;
    for (;;) {
      assertWaits(gone);
      try {
        return await this.#create(creation, audit, entryId);
      } catch (error) {
        if (error instanceof LimitsChangedError) continue;
        if (!isLockTimeout(error)) throw error;
        if (performance.now() >= until)
          throw error instanceof LimitsBusyError
            ? error
            : new UnavailableError(`Stack '${creation.object}' is being changed; please retry`, { cause: error });
        // The pause ends early if the client is gone.
        await sleep(lockedRetryMs, undefined, { signal: gone }).catch(() => {});
      }
    }
  }

  #create(creation: PreparedCreation, audit: AuditTrail, entryId?: string): Promise<CreatedUpdate> {
    return this.#context.db.inTransaction((tx) => creation.run(tx, audit, entryId));
  }

  /**
   * Issues a lease, which ends with the caller's token. After JournalFaultError, JournalNeededError and DecidingTagError, the update is
   * cancelled so that it does not block the stack: the CLI abandons it.
   */
  async start(
    ref: StackRef,
    updateId: string,
    caller: Caller,
    request: StartRequest,
    audit: AuditTrail,
  ): Promise<StartedUpdate> {
    const start = prepareStart(this.#context, { ref, caller, request }, this.reclaim.bind(this));
    try {
      return await start(updateId, audit);
    } catch (error) {
      const reason = reasonToWithdraw(error);
      if (reason !== null) await this.withdraw({ updateId, reason }, audit);
      throw error;
    }
  }

  /**
   * Starts an update that its client does not know of yet. It is withdrawn if it cannot be started, if its client leaves (`gone`), or if it
   * is unknown whether it has started.
   */
  async startNew(
    ref: StackRef,
    updateId: string,
    caller: Caller,
    { gone, ...request }: Omit<StartRequest, 'lease'> & { readonly gone: AbortSignal },
    audit: AuditTrail,
  ): Promise<StartedUpdate & { readonly stack: StackRow }> {
    const lease = mintLease();
    try {
      // Found first, because a client without a response would not know of a started update.
      const stack = await this.#context.stacks.find(ref);
      if (!stack) throw updateNotFound(updateId);
      assertWaits(gone);
      const started = await this.start(ref, updateId, caller, { ...request, lease }, audit);
      assertWaits(gone);
      return { ...started, stack: { ...stack, tags: started.tags ?? stack.tags } };
    } catch (error) {
      const reason = gone.aborted ? 'client-gone' : 'not-started';
      await this.#withdrawThroughOutage({ updateId, reason, lease: { hash: lease.hash } }, audit);
      throw error;
    }
  }

  /**
   * Ends an update whose client got no response to the call that created it or (`started`) issued its lease. Does nothing if the update has
   * been started, or the lease used, since. Never fails.
   */
  async withdrawUnanswered(
    updateId: string,
    started: StartedUpdate | null,
    reason: WithdrawReason,
    audit: AuditTrail,
  ): Promise<void> {
    const lease = started ? { hash: hashToken(started.token), expiresAt: started.expiresAt } : undefined;
    await this.#withdrawThroughOutage({ updateId, reason, lease }, audit);
  }

  /** Full checkpoints of the update are ordered by arrival. */
  assignArrivalSequence(updateId: string): Promise<number> {
    return this.#context.updates.assignArrivalSequence(updateId);
  }

  /** Extends the lease by `seconds`, at most the configured lease duration. */
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
   * Compacts the journal into a checkpoint, then ends the update. Idempotent. The update does not end if it throws: LeaseLostError,
   * JournalGapError unless it has failed, ConflictError if entries keep arriving, or an error of the compaction (InvalidJournalError,
   * UnavailableError).
   */
  async complete(
    lease: Lease,
    { organization, status }: { readonly organization: string; readonly status: EndStatus },
    audit: AuditTrail,
  ): Promise<CompletedUpdate> {
    const { metrics } = this.#context;
    // A cached lease does not tell whether there are pending entries.
    let isAssumed = lease.hasPendingEntries === undefined;
    let hasPendingEntries = lease.hasPendingEntries ?? lease.journalVersion > 0;
    let losses: OutputLosses | null | undefined;
    for (let attempt = 1; attempt <= maxCompleteAttempts; attempt++) {
      if (hasPendingEntries) await compactRunning(this.#context, lease, { isAssumed, organization });
      isAssumed = false;
      const completion = await this.#completeOnce(lease, status, losses, audit);
      // More entries were accepted since the compaction. Without another one, the version would lack them.
      hasPendingEntries = completion.outcome === 'pending-entries';
      switch (completion.outcome) {
        case 'other-database':
          await checkForRollback(this.#context);
          break;
        case 'lease-lost':
          throw await this.#leaseLost(lease);
        case 'gap':
          throw new JournalGapError(completion.missingEntries);
        case 'watched':
          losses = await findOutputLosses(this.#context, lease.updateId);
          break;
        case 'ended':
        case 'repeated':
          if (completion.outcome === 'ended') metrics.updatesEnded.labels(completion.kind, status).inc();
          else await this.#assertEndedBy(lease);
          if (lease.journalVersion > 0) compactSoon(this.#context, lease.updateId, lease.baseBytes);
          return { missingEntries: completion.missingEntries };
      }
    }
    throw new ConflictError('Entries keep arriving while the update is being completed');
  }

  /** The lease may come from the cache, so the update may have been ended without it. */
  async #assertEndedBy(lease: Lease): Promise<void> {
    const update = await this.#context.updates.find(lease.updateId);
    if (!update?.leaseHash || isLeaseLoss(update.endReason)) throw await this.#leaseLost(lease);
  }

  /** `losses` undefined: not checked. */
  #completeOnce(
    { epoch, stackId, updateId }: Lease,
    status: EndStatus,
    losses: OutputLosses | null | undefined,
    audit: AuditTrail,
  ): Promise<Completion> {
    const { rollbackState, db } = this.#context;
    const complete = (on: Queryable): Promise<Completion> =>
      audit.recordWith(
        (source, action) =>
          createLockedUpdateRepository(on).complete(
            { id: updateId, epoch, seen: rollbackState.seen, status, knowsOutputs: losses !== undefined },
            source,
            action,
          ),
        // The first of repeated calls has been recorded.
        ({ outcome }) => outcome === 'ended' || outcome === 'repeated',
      );
    if (!losses) return complete(db);
    return db.inTransaction(async (tx) => {
      const completion = await complete(tx);
      if (completion.outcome === 'ended') await recordOutputLosses(tx, { stackId, updateId }, losses);
      return completion;
    });
  }

  /** Succeeds even if the update has already ended. Its saved state is kept. */
  async cancel(ref: StackRef, updateId: string, caller: Caller, audit: AuditTrail): Promise<void> {
    const { db, metrics, updates } = this.#context;
    const found = await updates.findNamed(updateId, ref);
    if (!found) throw updateNotFound(updateId);
    const isCancelled = await db.inTransaction(async (tx) => {
      const access = await lockAccess(tx, ref.organization, caller);
      const locked = await lockUpdate(tx, updateId);
      if (!locked) throw updateNotFound(updateId);
      assertPermission(access, locked.stack, readTags(locked.stack.tags), permissionOfUpdate(found));
      const wasActive = await cancelUpdate(tx, locked, 'cancelled');
      if (wasActive) await audit.record(tx, endOf(locked, {}));
      else audit.settle();
      return wasActive;
    });
    if (isCancelled) metrics.updatesEnded.labels(found.kind, 'cancelled').inc();
    if (found.journalVersion > 0) compactSoon(this.#context, updateId);
  }

  async reclaim(stackId: string, options: ReclaimOptions = {}): Promise<void> {
    const { compactor, config, awaitCompaction } = this.#context;
    const compact = (updateId: string): Promise<void> =>
      awaitCompaction(updateId, options.organization).catch((error: unknown) => compactor.setAside(updateId, error));
    await reclaimStack(this.#context, stackId, config.leaseSeconds, compact, options);
  }

  /** The error for a lease that was valid when the call began, or that came from the cache. */
  async #leaseLost({ hasPendingEntries, updateId }: Lease): Promise<LeaseLostError> {
    const { rollbackState, updates } = this.#context;
    const update = await updates.find(updateId);
    const lostAt = hasPendingEntries === undefined ? rollbackState.lostAt : null;
    if (!update || !isLeaseLoss(update.endReason)) return new LeaseLostError(describeUnknown(lostAt));
    return revokedLeaseError(this.#context, update, update.endReason);
  }

  async withdraw(withdrawal: Withdrawal, audit: AuditTrail): Promise<void> {
    await withdrawUpdate(this.#context, withdrawal, audit);
  }

  /** If the database is not available, returns and continues to try in the background. */
  async #withdrawThroughOutage(
    withdrawal: Withdrawal,
    audit: AuditTrail,
    until = performance.now() + withdrawMs,
  ): Promise<void> {
    try {
      await this.withdraw(withdrawal, audit);
    } catch (err) {
      if (isOutage(err) && performance.now() < until) {
        const again = (): void => void this.#withdrawThroughOutage(withdrawal, audit, until);
        setTimeout(again, withdrawRetryMs).unref();
      } else {
        const { updateId } = withdrawal;
        this.#context.logger.error({ err, updateId }, 'an update without a client could not be withdrawn');
      }
    }
  }
}

function assertWaits(gone: AbortSignal): void {
  if (gone.aborted) throw new InvalidRequestError('The client has disconnected');
}

export interface CompletedUpdate {
  /** Ids of the entries that the journal lacks, as in `3-4, 7`; null: none. */
  readonly missingEntries: string | null;
}
