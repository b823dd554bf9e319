import { randomUUID } from 'node:crypto';
import { runFirst } from '../../../shared/platform/db/connection-gate.ts';
import type { Database } from '../../../shared/platform/db/database.ts';
import type { Notifications } from '../../../shared/platform/db/notification-listener.ts';
import { outsideCalls } from '../../../shared/platform/lifecycle/outside-calls.ts';
import type { Logger } from '../../../shared/platform/logger/logger.ts';
import {
  createUpdateQueueRepository,
  heldMessage,
  type RunView,
  rulesMessage,
  supersededMessage,
  type UpdateQueueRepository,
  updateQueueChannel,
  type WaitingRun,
  type WaitTerms,
} from '../../../shared/updates/update-queue-repository.ts';
import type { Limit } from '../rules/concurrency-limit.ts';
import { aliveSeconds, ProcessRenewal } from './process-renewal.ts';
import { StackReclaims } from './stack-reclaims.ts';
import { lostEntry, pause, type QueueEntry, type WaitingCall, type Wake, waitingCall } from './waiting-call.ts';

/** How often this process checks for lost notifications and entries, in ms. */
const checkMs = 400;
/** A client that was asked to call again keeps its position for this time, in seconds. */
const keptSeconds = 10;
/** After this time, a call deferred by a rule checks again even if no change of rules was notified, in ms. */
const deferredMs = 2_000;
const checksPerRemoval = 10;
/** Checks between two examinations of the limits while no update ends. */
const checksPerLimit = 5;

interface Entering extends WaitTerms {
  readonly organizationId: string;
  readonly tokenId: string;
  /** The caller's earlier position. */
  readonly id: string | null;
  readonly isUrgent: boolean;
  readonly run: WaitingRun | null;
  /** Webhooks are notified of the wait after this time. */
  readonly alertSeconds: number;
  readonly shown: RunView;
}

/**
 * The calls of this process that wait for stacks. Entries are in the database, so any process may hold the calls of one queue. When a stack
 * is released, the database notifies the process that holds its first call; calls do not poll.
 */
export class UpdateQueue {
  readonly #db: Database;
  readonly #entries: UpdateQueueRepository;
  readonly #logger: Logger;
  readonly #processId = randomUUID();
  readonly #waiting = new Map<string, WaitingCall>();
  /** Ids of positions that calls are about to take. */
  readonly #entering = new Set<string>();
  readonly #renewal: ProcessRenewal;
  readonly #reclaims: StackReclaims;
  #notifications: Notifications | undefined;
  #timer: NodeJS.Timeout | undefined;
  #check: Promise<void> | undefined;
  #checks = 0;
  /** Whether an update may have ended since the first calls deferred by limits were last notified. */
  #mayGo = false;
  #isDraining = false;

  /** `reclaim` ends an update whose lease has expired. */
  constructor({ db, logger }: { db: Database; logger: Logger }, reclaim: (stackId: string) => Promise<void>) {
    this.#db = db;
    this.#entries = createUpdateQueueRepository(db);
    this.#logger = logger;
    this.#renewal = new ProcessRenewal(this.#entries, this.#processId, logger);
    this.#reclaims = new StackReclaims(reclaim, logger);
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  get oldestSeconds(): number {
    const now = performance.now();
    let oldest = now;
    for (const { since } of this.#waiting.values()) oldest = Math.min(oldest, since);
    return (now - oldest) / 1000;
  }

  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** Takes a position at the end of the queue, or resumes the position `id` if it is still the caller's. */
  async enter(stackId: string, { alertSeconds, id, organizationId, ...waiter }: Entering): Promise<QueueEntry> {
    await this.#renewal.renew();
    const owner = { stackId, tokenId: waiter.tokenId, processId: this.#processId };
    const newId = randomUUID();
    const own = [newId, ...(id === null ? [] : [id])];
    for (const each of own) this.#entering.add(each);
    try {
      const row =
        (id === null ? null : await this.#entries.resume(id, owner)) ??
        // A call that has lost its position may be older than later arrivals, so it supersedes none.
        (await this.#entries.join({ ...owner, ...waiter, id: newId, supersedes: id === null }));
      return this.#occupy(waitingCall({ ...row, ...waiter, stackId }, { alertSeconds, organizationId }));
    } finally {
      for (const each of own) this.#entering.delete(each);
    }
  }

  #occupy(call: WaitingCall): QueueEntry {
    this.#waiting.set(call.id, call);
    this.#start();
    return { id: call.id, stackId: call.stackId, since: call.since };
  }

  /** Waits for the turn of the entry. `deadline`: by `performance.now()`. */
  async next({ id }: QueueEntry, deadline: number, gone: AbortSignal): Promise<Wake> {
    const call = this.#waiting.get(id);
    if (!call) throw new Error(`No call waits at ${id}`);
    for (;;) {
      if (gone.aborted) return 'gone';
      if (this.#isDraining) return 'draining';
      if (call.isSuperseded) return 'superseded';
      if (call.isNext) {
        call.isNext = false;
        return 'turn';
      }
      const leftMs = deadline - performance.now();
      if (leftMs <= 0) return 'over';
      await pause(call, leftMs, gone);
    }
  }

  /** The call checks again when the limit or the rule may have changed. */
  async defer({ id }: QueueEntry, limit: Limit | null): Promise<void> {
    const call = this.#waiting.get(id);
    if (!call) return;
    call.deferredUntil = limit ? Number.POSITIVE_INFINITY : performance.now() + deferredMs;
    if (limit === null && !call.isLimited) return;
    call.isLimited = limit !== null;
    const isNew = await this.#entries.noteLimit(id, limit);
    // From now on, the call is notified when an update ends. One may have ended before, so the call checks once more.
    if (isNew && limit) call.isNext = true;
  }

  /** Makes the call check again later, although its turn has come: the database was not available. */
  postpone({ id }: QueueEntry): void {
    const call = this.#waiting.get(id);
    if (call) call.deferredUntil = performance.now() + deferredMs;
  }

  /** The call no longer waits here, but its client will call again. */
  async keep({ id }: QueueEntry): Promise<void> {
    await this.#entries.keep(id, this.#processId, keptSeconds);
    this.#forget(id);
  }

  /** If the database is not available, a later check removes the entry. */
  async leave({ id, stackId }: QueueEntry): Promise<void> {
    this.#forget(id);
    await this.#entries.leave(id, stackId).catch((error: unknown) => {
      this.#logger.debug({ err: error }, 'update queue: an entry could not be removed yet');
    });
  }

  /** The creation of the update has removed the position from the queue. */
  forget({ id }: QueueEntry): void {
    this.#forget(id);
  }

  drain(): void {
    this.#isDraining = true;
    for (const call of this.#waiting.values()) call.wake();
  }

  async close(): Promise<void> {
    this.drain();
    this.#stop();
    await this.#check;
    await this.#reclaims.close();
    await this.#notifications?.close();
    this.#notifications = undefined;
    await this.#renewal.close();
  }

  #forget(id: string): void {
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) this.#stop();
  }

  #stop(): void {
    this.#renewal.stop();
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #start(): void {
    this.#notifications ??= this.#db.listen(updateQueueChannel, (message) => this.#hear(message));
    this.#renewal.start();
    this.#timer ??= outsideCalls(() => setInterval(() => runFirst(() => this.#beginCheck()), checkMs).unref());
  }

  #beginCheck(): void {
    this.#check ??= this.#checkAll()
      .catch((error: unknown) => this.#logger.warn({ err: error }, 'update queue: entries could not be checked'))
      .finally(() => {
        this.#check = undefined;
      });
  }

  async #checkAll(): Promise<void> {
    if (this.#checks++ % checksPerRemoval === 0) {
      await this.#entries.clipTimes({ alive: aliveSeconds, kept: keptSeconds });
      await this.#entries.removeGone();
    }
    if (this.#checks % checksPerLimit === 0) this.#mayGo = true;
    await this.#notifyLimited();
    await this.#notifyOfLate();
    await this.#checkEntries();
    const stackIds = [...new Set([...this.#waiting.values()].map(({ stackId }) => stackId))];
    for (const { id, stackId, isExpired } of await this.#entries.listNext(this.#processId, stackIds)) {
      if ((this.#waiting.get(id)?.deferredUntil ?? 0) > performance.now()) continue;
      if (isExpired) this.#reclaims.begin(stackId, () => this.#wake(id, 'isNext'));
      else this.#wake(id, 'isNext');
    }
  }

  /**
   * Wakes superseded calls, and removes entries that calls have left behind: they would block their queues while this process lives.
   * Restores lost entries of sleeping calls only: a call that is awake may have ended its wait itself.
   */
  async #checkEntries(): Promise<void> {
    // Collected before the query, which does not see the entries of later calls.
    const asleep = [...this.#waiting.values()].filter(({ isAsleep, isElsewhere }) => isAsleep && !isElsewhere);
    const entries = await this.#entries.listOf(this.#processId);
    const ids = new Set(entries.map(({ id }) => id));
    await this.#restore(asleep.filter((call) => !ids.has(call.id)));
    for (const { id, isSuperseded } of entries) if (isSuperseded) this.#wake(id, 'isSuperseded');
    const abandoned = entries.map(({ id }) => id).filter((id) => !this.#waiting.has(id) && !this.#entering.has(id));
    if (abandoned.length > 0) await this.#entries.removeAbandoned(this.#processId, abandoned);
  }

  async #restore(missing: readonly WaitingCall[]): Promise<void> {
    const lost = missing.filter((call) => call.isAsleep && this.#waiting.get(call.id) === call);
    if (lost.length === 0) return;
    for (const { id, isElsewhere } of await this.#entries.restore(this.#processId, lost.map(lostEntry))) {
      const call = this.#waiting.get(id);
      if (call && isElsewhere) call.isElsewhere = true;
      // The call finds out again why it waits, which the lost entry had recorded, or that its stack or token is gone.
      else this.#wake(id, 'isNext');
    }
  }

  #hear(message: string): void {
    if (message.startsWith(rulesMessage)) {
      for (const call of this.#waiting.values())
        if (message === rulesMessage + call.organizationId) call.deferredUntil = 0;
      this.#beginCheck();
    } else if (message.startsWith(heldMessage)) {
      const organizationId = message.slice(heldMessage.length);
      if (!this.#waiting.values().some((call) => call.isLimited && call.organizationId === organizationId)) return;
      this.#mayGo = true;
      this.#beginCheck();
    } else if (message.startsWith(supersededMessage)) {
      // The transaction may have been rolled back, so the entry decides.
      if (this.#waiting.has(message.slice(supersededMessage.length))) this.#beginCheck();
    } else this.#wake(message, 'isNext');
  }

  async #notifyLimited(): Promise<void> {
    if (!this.#mayGo) return;
    this.#mayGo = false;
    if (!this.#waiting.values().some(({ isLimited }) => isLimited)) return;
    for (const id of await this.#entries.listFirstHeld(this.#processId)) this.#wake(id, 'isNext');
  }

  /** Webhooks are notified of each position once, across processes. */
  async #notifyOfLate(): Promise<void> {
    const now = performance.now();
    const late = [...this.#waiting.values()].filter(
      ({ alertSeconds, isLateNotified, since }) => !isLateNotified && since + alertSeconds * 1000 < now,
    );
    if (late.length === 0) return;
    await this.#entries.notifyOfLate(late.map(({ id }) => id));
    for (const call of late) call.isLateNotified = true;
  }

  #wake(id: string, why: 'isNext' | 'isSuperseded'): void {
    const call = this.#waiting.get(id);
    if (!call) return;
    call[why] = true;
    call.wake();
  }
}
