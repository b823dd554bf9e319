import { randomUUID } from 'node:crypto';
import type { Database } from '../../shared/platform/db/database.ts';
import type { Notifications } from '../../shared/platform/db/notifications.ts';
import type { Logger } from '../../shared/platform/logger/logger.ts';
import {
  createLockQueueRepository,
  type LockQueueRepository,
  lockQueueChannel,
} from '../../shared/updates/lock-queue-repository.ts';

/** How often this process says that its calls wait, and looks for turns whose notification was lost, in ms. */
const checkMs = 400;
/** After this time without it, the calls of this process no longer stop those behind them, in seconds. */
const aliveSeconds = 1.6;
/** A client that was asked to call again keeps its place for this time, in seconds. */
const keptSeconds = 10;
/** Checks from one removal of lost places to the next. */
const checksPerRemoval = 10;

/** Why a waiting call goes on: it may be its turn, its time is over, its client has gone, or the process stops. */
export type Wake = 'turn' | 'over' | 'gone' | 'draining';

/** A place in the queue of a stack at which a call of this process waits. */
export interface Place {
  readonly id: string;
  readonly stackId: string;
  /** When it was taken, by `performance.now()`. */
  readonly since: number;
}

interface WaitingCall extends Place {
  /** Its turn has come, and it has not looked yet. */
  isNext: boolean;
  wake: () => void;
}

/**
 * The calls of this process that wait for stacks. Places are in the database, so any process may hold the calls of one queue. The
 * database tells the process of the first place when its stack is released; no call asks by itself.
 */
export class LockQueue {
  readonly #db: Database;
  readonly #places: LockQueueRepository;
  readonly #logger: Logger;
  readonly #processId = randomUUID();
  readonly #waiting = new Map<string, WaitingCall>();
  /** Ends an update whose lease has expired. */
  readonly #reclaim: (stackId: string) => Promise<void>;
  #notifications: Notifications | undefined;
  #timer: NodeJS.Timeout | undefined;
  #check: Promise<void> | undefined;
  #checks = 0;
  #isDraining = false;

  constructor({ db, logger }: { db: Database; logger: Logger }, reclaim: (stackId: string) => Promise<void>) {
    this.#db = db;
    this.#places = createLockQueueRepository(db);
    this.#logger = logger;
    this.#reclaim = reclaim;
  }

  /** Calls that wait in this process. */
  get waiting(): number {
    return this.#waiting.size;
  }

  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** Takes a place at the end of the queue, or the one with this id if it is still the caller's. */
  async enter(stackId: string, { tokenId, id }: { tokenId: string; id: string | null }): Promise<Place> {
    await this.#places.renewProcess(this.#processId, aliveSeconds);
    const owner = { stackId, tokenId, processId: this.#processId };
    const row = (id === null ? null : await this.#places.resume(id, owner)) ?? (await this.#places.join(owner));
    const place = { id: row.id, stackId, since: performance.now() - row.waitedSeconds * 1000 };
    // It may have been released before the place was taken.
    this.#waiting.set(place.id, { ...place, isNext: true, wake: () => {} });
    this.#start();
    return place;
  }

  /** Waits for the turn of the place, at most until `deadline` by `performance.now()`. */
  async next({ id }: Place, deadline: number, gone: AbortSignal): Promise<Wake> {
    const call = this.#waiting.get(id);
    if (!call) throw new Error(`No call waits at ${id}`);
    for (;;) {
      if (gone.aborted) return 'gone';
      if (this.#isDraining) return 'draining';
      if (call.isNext) {
        call.isNext = false;
        return 'turn';
      }
      const leftMs = deadline - performance.now();
      if (leftMs <= 0) return 'over';
      await pause(call, leftMs, gone);
    }
  }

  /** The call no longer waits here, but its client will call again. */
  async keep({ id }: Place): Promise<void> {
    this.#forget(id);
    await this.#places.keep(id, this.#processId, keptSeconds);
  }

  /** Gives up the place. */
  async leave({ id, stackId }: Place): Promise<void> {
    this.#forget(id);
    await this.#places.leave(id, stackId);
  }

  /** The place was taken out of the queue with the change that it waited for. */
  forget({ id }: Place): void {
    this.#forget(id);
  }

  /** Lets all calls go on: this process is about to stop. */
  drain(): void {
    this.#isDraining = true;
    for (const call of this.#waiting.values()) call.wake();
  }

  async close(): Promise<void> {
    this.drain();
    clearInterval(this.#timer);
    this.#timer = undefined;
    await this.#check;
    await this.#notifications?.close();
    this.#notifications = undefined;
    if (this.#checks > 0) await this.#places.removeProcess(this.#processId).catch(() => {});
  }

  #forget(id: string): void {
    this.#waiting.delete(id);
    if (this.#waiting.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #start(): void {
    this.#notifications ??= this.#db.listen(lockQueueChannel, (id) => this.#tell(id));
    this.#timer ??= setInterval(() => {
      this.#check ??= this.#checkAll()
        .catch((error: unknown) => this.#logger.warn({ err: error }, 'lock queue: turns could not be checked'))
        .finally(() => {
          this.#check = undefined;
        });
    }, checkMs).unref();
  }

  async #checkAll(): Promise<void> {
    await this.#places.renewProcess(this.#processId, aliveSeconds);
    if (this.#checks++ % checksPerRemoval === 0) await this.#places.removeGone();
    const stackIds = [...new Set([...this.#waiting.values()].map(({ stackId }) => stackId))];
    for (const { id, stackId, isExpired } of await this.#places.listNext(this.#processId, stackIds)) {
      if (isExpired) await this.#reclaim(stackId);
      this.#tell(id);
    }
  }

  #tell(id: string): void {
    const call = this.#waiting.get(id);
    if (!call) return;
    call.isNext = true;
    call.wake();
  }
}

/** Waits until the call is woken, for at most `ms`. */
async function pause(call: WaitingCall, ms: number, gone: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const wake = (): void => resolve();
  call.wake = wake;
  const timer = setTimeout(wake, ms);
  gone.addEventListener('abort', wake, { once: true });
  await promise;
  clearTimeout(timer);
  gone.removeEventListener('abort', wake);
}
