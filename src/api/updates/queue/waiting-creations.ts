import { isLockTimeout, isOutage } from '../../../shared/platform/db/sqlstate.ts';
import { InvalidRequestError, UnavailableError } from '../../../shared/platform/errors/errors.ts';
import { formatStackRef, type StackRef } from '../../../shared/stacks/names.ts';
import { DeferredError } from '../../../shared/updates/deferred.ts';
import { FrozenError } from '../../../shared/updates/rules/freeze.ts';
import { StackBusyError } from '../../../shared/updates/update-errors.ts';
import {
  createUpdateQueueRepository,
  type UpdateQueueRepository,
} from '../../../shared/updates/update-queue-repository.ts';
import type { ApiContext } from '../../platform/api-context.ts';
import type { AuditTrail } from '../../platform/audit-trail/audit-trail.ts';
import type { Caller, Dialect } from '../../platform/http/request.ts';
import type { NewUpdateRequest } from '../new-update-request.ts';
import { noteRefusal } from '../note-refusal.ts';
import { notifyOfFreeze, notifyOfRefusal } from '../notify-of-freeze.ts';
import { LimitError } from '../rules/concurrency-limit.ts';
import type { CreatedUpdate, PreparedCreation } from '../update-creation.ts';
import type { UpdateService } from '../update-service.ts';
import { refusalReason } from './refusal-reason.ts';
import { runView } from './run-view.ts';
import { SupersededError } from './superseding.ts';
import type { UpdateQueue } from './update-queue.ts';
import { describeHolder, describeWait } from './update-queue-messages.ts';
import type { QueueEntry } from './waiting-call.ts';
import { WaitingMemory } from './waiting-memory.ts';

/** Number of redirects of a call that the CLI follows. */
const maxHops = 9;
/**
 * How long a call waits beyond its hold while the database is not available, in ms: less than the difference between the default hold and a
 * proxy's usual limit of 60 s. The CLI would not repeat the call after a 503.
 */
const outageMs = 5_000;
const outageRetryMs = 500;

interface CreationRequest {
  readonly ref: StackRef;
  readonly caller: Caller;
  readonly dialect: Dialect;
  readonly request: NewUpdateRequest;
}

export interface WaitingRequest {
  /** The position that the redirect to this call named; null: the call is new. */
  readonly entryId: string | null;
  readonly hop: number;
  readonly gone: AbortSignal;
  /** No update is created before this has succeeded. */
  readonly informed: Promise<unknown>;
  /** When the call should have a response, by `performance.now()`. The last call of a client waits for as long as it may. */
  readonly until: number;
}

interface Waiting {
  readonly audit: AuditTrail;
  readonly waiting: WaitingRequest;
}

/** Since when a call has waited, by `performance.now()`; null: it has not. */
interface Wait {
  since: number | null;
}

/** The update, or the position with which the client must call again. */
export type QueuedUpdate =
  | (CreatedUpdate & { readonly hasWaited?: true })
  | { readonly entryId: string; readonly hop: number };

/** While another update holds the stack, calls wait in the order of their arrival, if they may wait. */
export class WaitingCreations {
  readonly #context: ApiContext;
  readonly #updates: UpdateService;
  readonly #queue: UpdateQueue;
  readonly #entries: UpdateQueueRepository;
  readonly #memory = new WaitingMemory();

  constructor(context: ApiContext, updates: UpdateService, queue: UpdateQueue) {
    this.#context = context;
    this.#updates = updates;
    this.#queue = queue;
    this.#entries = createUpdateQueueRepository(context.db);
  }

  /** When a call that begins now should have a response, by `performance.now()`. */
  responseTime(): number {
    return performance.now() + this.#context.config.updateQueue.longPollSeconds * 1000;
  }

  /** No update exists if it throws. A StackBusyError names the lock holder. */
  async create(request: CreationRequest, audit: AuditTrail, waiting: WaitingRequest): Promise<QueuedUpdate> {
    try {
      return await this.#createOrWait(request, audit, waiting);
    } catch (error) {
      const reason = refusalReason(error);
      if (reason !== null) this.#context.metrics.updatesRefused.labels(reason).inc();
      throw error;
    }
  }

  async #createOrWait(
    { ref, caller, dialect, request }: CreationRequest,
    audit: AuditTrail,
    waiting: WaitingRequest,
  ): Promise<QueuedUpdate> {
    const preparing = this.#updates.prepare(ref, caller, dialect, request, waiting.entryId);
    // Both must settle, so that no work continues after an error. If both fail, the error of `informed` counts.
    await Promise.allSettled([waiting.informed, preparing]);
    await waiting.informed;
    const creation = await preparing;
    // The checks may be out of date, because `informed` may have taken long.
    await creation.renew(Number.POSITIVE_INFINITY);
    const wait: Wait = { since: null };
    try {
      return await this.#createPrepared(creation, { ref, caller, dialect, audit, waiting }, wait);
    } catch (error) {
      if (error instanceof FrozenError) await notifyOfRefusal(this.#context, creation, { error, caller });
      const waitedMs = wait.since === null ? 0 : performance.now() - wait.since;
      await noteRefusal(this.#context, creation, { error, caller, waitedMs });
      throw error;
    }
  }

  async #createPrepared(
    creation: PreparedCreation,
    { ref, caller, dialect, audit, waiting }: Omit<CreationRequest, 'request'> & Waiting,
    wait: Wait,
  ): Promise<QueuedUpdate> {
    if (waiting.entryId === null || creation.lockWaitSeconds === 0) {
      try {
        return await this.#updates.create(creation, audit, { gone: waiting.gone });
      } catch (error) {
        if (!isReasonToWait(error)) throw error;
        const isContract = dialect === 'contract';
        if (creation.lockWaitSeconds === 0)
          throw isContract || !(error instanceof StackBusyError) ? error : await this.#refusal(creation, null);
      }
    }
    const { chars, organization } = creation;
    using _new = waiting.entryId === null ? this.#memory.hold(organization, chars, { isNew: true }) : null;
    const entry = await this.#queue.enter(creation.stackId, {
      organizationId: creation.organizationId,
      tokenId: caller.tokenId,
      id: waiting.entryId,
      isUrgent: creation.isUrgent,
      run: creation.waitingRun,
      alertSeconds: creation.waitAlertSeconds,
      shown: runView(creation.kind, creation.environment),
      tags: creation.tagsAtArrival,
      waitSeconds: creation.lockWaitSeconds,
    });
    wait.since = entry.since;
    let isWaiting = true;
    try {
      const isNew = entry.id !== waiting.entryId;
      using _again = waiting.entryId === null ? null : this.#memory.hold(organization, chars, { isNew });
      const outcome = await this.#wait(creation, entry, { audit, waiting, ref, caller });
      isWaiting = 'updateId' in outcome ? false : !outcome.isKept;
      return outcome;
    } finally {
      if (isWaiting) await this.#queue.leave(entry);
    }
  }

  async #wait(
    creation: PreparedCreation,
    entry: QueueEntry,
    { audit, caller, ref, waiting }: Pick<CreationRequest, 'caller' | 'ref'> & Waiting,
  ): Promise<QueuedUpdate & { isKept?: true }> {
    const { logger, metrics } = this.#context;
    const over = entry.since + creation.lockWaitSeconds * 1000;
    // The CLI would not follow another redirect.
    const isLast = waiting.hop >= maxHops;
    let deferred: DeferredError | null = null;
    let isFreezeNotified = false;
    const heldUntil = isLast ? over : Math.min(over, waiting.until);
    const attempt = { audit, until: isLast ? Number.POSITIVE_INFINITY : waiting.until, gone: waiting.gone };
    let holdUntil = heldUntil;
    for (;;) {
      const wake = await this.#queue.next(entry, holdUntil, waiting.gone);
      if (wake === 'gone') throw new InvalidRequestError('The client has disconnected');
      if (wake === 'superseded') throw await this.#superseded(entry);
      if (wake === 'turn') {
        const created = await this.#attempt(creation, entry, attempt);
        if (created === 'outage') continue;
        if (created === null || created instanceof DeferredError) {
          deferred = created;
          if (created instanceof FrozenError && !isFreezeNotified)
            isFreezeNotified = await this.#notifyOfWait(creation, entry, { error: created, caller });
          if (created) await this.#defer(entry, created);
          continue;
        }
        const { updateId } = created;
        this.#queue.forget(entry);
        const waitedSeconds = (performance.now() - entry.since) / 1000;
        metrics.lockWaitSeconds.labels('turn').observe(waitedSeconds);
        // The update exists, so no later step may fail.
        const behind = await this.#entries.count(creation.stackId).catch(() => 0);
        logger.info({ updateId, waitedSeconds, behind }, 'update created after waiting for its stack');
        return {
          updateId,
          hasWaited: true,
          messages: [
            describeWait(formatStackRef(ref), waitedSeconds, { behind, state: deferred?.state }),
            ...created.messages,
          ],
        };
      }
      if (performance.now() >= over) {
        metrics.lockWaitSeconds.labels('over').observe((performance.now() - entry.since) / 1000);
        throw deferred ?? (await this.#refusal(creation, entry));
      }
      if (isLast)
        throw new UnavailableError('The server is stopping, and this call was waiting; please start the command again');
      try {
        await this.#queue.keep(entry);
      } catch (error) {
        holdUntil = Math.min(performance.now() + outageRetryMs, heldUntil + outageMs);
        if (wake !== 'over' || !isOutage(error) || performance.now() >= holdUntil) throw error;
        continue;
      }
      metrics.lockHolds.inc();
      return { entryId: entry.id, hop: waiting.hop + 1, isKept: true };
    }
  }

  /**
   * Returns the update, or the rule that defers it, or null if another update holds the lock or the checks last longer than `until`.
   * `outage`: the database is not available, or a lock was held for too long; nothing is acknowledged yet, so the call continues to wait.
   */
  async #attempt(
    creation: PreparedCreation,
    entry: QueueEntry,
    { audit, gone, until }: { readonly audit: AuditTrail } & Pick<WaitingRequest, 'gone' | 'until'>,
  ): Promise<CreatedUpdate | DeferredError | 'outage' | null> {
    // The server may have become read-only while the call waited.
    this.#context.readOnly.assertOff();
    try {
      // The next call of this client repeats the checks first.
      if (!(await creation.renew(until))) return null;
      return await this.#updates.create(creation, audit, { entryId: entry.id, gone });
    } catch (error) {
      if (isOutage(error) || isLockTimeout(error)) return this.#noteOutage(entry, error);
      if (!isReasonToWait(error)) throw error;
      return error instanceof DeferredError ? error : null;
    }
  }

  async #defer(entry: QueueEntry, error: DeferredError): Promise<void> {
    try {
      await this.#queue.defer(entry, error instanceof LimitError ? error.limit : null);
    } catch (failure) {
      if (!isOutage(failure)) throw failure;
      this.#noteOutage(entry, failure);
    }
  }

  #noteOutage(entry: QueueEntry, error: unknown): 'outage' {
    this.#queue.postpone(entry);
    this.#context.logger.warn({ err: error, stackId: entry.stackId }, 'a waiting update could not be created yet');
    return 'outage';
  }

  /** Returns whether webhooks were notified. */
  async #notifyOfWait(
    creation: PreparedCreation,
    { id }: QueueEntry,
    by: { error: FrozenError; caller: Caller },
  ): Promise<boolean> {
    try {
      await this.#context.db.inTransaction(async (tx) => {
        const isNew = await createUpdateQueueRepository(tx).noteFreeze(id);
        if (isNew) await notifyOfFreeze(tx, creation, { ...by, isWaiting: true });
      });
      return true;
    } catch (error) {
      this.#context.logger.warn({ err: error }, 'webhooks could not be notified of a freeze that blocks an update');
      return false;
    }
  }

  async #superseded({ id }: QueueEntry): Promise<Error> {
    const by = await this.#entries.findLoss(id);
    return by
      ? new SupersededError(by)
      : new UnavailableError('The position in the queue was lost; please start the command again');
  }

  async #refusal({ stackId, lockWaitSeconds }: PreparedCreation, entry: QueueEntry | null): Promise<StackBusyError> {
    const holder = await this.#entries.findHolder(stackId);
    const position = entry && (await this.#entries.positionOf(entry.id, stackId));
    return new StackBusyError(
      describeHolder(holder, position === null ? null : { position, waitedSeconds: lockWaitSeconds }),
    );
  }
}

function isReasonToWait(error: unknown): error is StackBusyError | DeferredError {
  return error instanceof StackBusyError || (error instanceof DeferredError && error.mayWait);
}
