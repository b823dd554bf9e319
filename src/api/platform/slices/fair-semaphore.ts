import { TooManyRequestsError, UnavailableError } from '../../../shared/platform/errors/errors.ts';
import type { Caller } from '../http/request.ts';

/** Limits on running and waiting calls of a process. */
export interface SemaphoreLimits {
  readonly atOnce: number;
  /** Of one caller. */
  readonly atOncePerCaller?: number;
  /** How many may wait. */
  readonly waiting?: number;
  /** Of one caller. */
  readonly waitingPerCaller?: number;
  /** Maximum wait, in ms. */
  readonly waitMs?: number;
}

/** Who counts as one caller: a user or token, or all that have this name in common. */
type Asker = Pick<Caller, 'tokenId' | 'userId'> | string;

interface Waiting {
  readonly who: string;
  readonly start: () => void;
}

/** The state of a caller with running or waiting calls. */
interface Asking {
  running: number;
  waiting: number;
  /** Sequence number of the last started call; 0: none. */
  servedAt: number;
}

const defaults = { waiting: 100, waitingPerCaller: 20, waitMs: 20_000 };
const retryAfterSeconds = 5;

/** The caller has too many calls in the queue. */
class OwnQueueError extends TooManyRequestsError {
  override readonly name = 'OwnQueueError';
  override readonly code = 'own-queue';
}

/**
 * Lets a few calls of a process run at once. The next waiting call is from the caller with the fewest running calls, and among
 * these, from the one that was served least recently: no caller waits for all earlier calls of another one.
 */
export class FairSemaphore {
  readonly #limits: Required<SemaphoreLimits>;
  readonly #asking = new Map<string, Asking>();
  /** In the order of their arrival. */
  readonly #queue: Waiting[] = [];
  #running = 0;
  #served = 0;

  constructor(limits: SemaphoreLimits) {
    this.#limits = { ...defaults, atOncePerCaller: limits.atOnce, ...limits };
  }

  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#queue.length;
  }

  /** Runs `work` once there is a slot. Throws the errors of `take` and of `work`. */
  async run<T>(caller: Asker, signal: AbortSignal | null, work: () => Promise<T>): Promise<T> {
    const end = await this.take(caller, signal);
    try {
      return await work();
    } finally {
      end();
    }
  }

  /**
   * Takes a slot when it is the caller's turn. The slot is kept until the returned function is called, even if `signal` is
   * aborted meanwhile because the caller is gone: started work still runs. Throws OwnQueueError, UnavailableError.
   */
  async take(caller: Asker, signal: AbortSignal | null): Promise<() => void> {
    if (signal?.aborted) throw gone();
    const who = typeof caller === 'string' ? caller : (caller.userId ?? caller.tokenId);
    const asking = this.#asking.get(who) ?? { running: 0, waiting: 0, servedAt: 0 };
    this.#asking.set(who, asking);
    if (this.#mayRun(asking)) this.#start(asking);
    else {
      this.#assertMayWait(asking);
      await this.#wait(who, asking, signal);
    }
    let isEnded = false;
    return () => {
      if (isEnded) return;
      isEnded = true;
      this.#running--;
      asking.running--;
      this.#forget(who, asking);
      this.#startNext();
    };
  }

  #assertMayWait(asking: Asking): void {
    const { waiting, waitingPerCaller } = this.#limits;
    if (asking.waiting >= waitingPerCaller)
      throw new OwnQueueError(
        `You have ${asking.waiting} such calls waiting; please retry when some of them are answered`,
        { retryAfterSeconds },
      );
    if (this.#queue.length >= waiting) throw tooLong();
  }

  async #wait(who: string, asking: Asking, signal: AbortSignal | null): Promise<void> {
    const { promise, reject, resolve } = Promise.withResolvers<void>();
    const waiting: Waiting = { who, start: resolve };
    this.#queue.push(waiting);
    asking.waiting++;
    const giveUp = (error: UnavailableError) => () => {
      const at = this.#queue.indexOf(waiting);
      // It is the caller's turn.
      if (at < 0) return;
      this.#queue.splice(at, 1);
      asking.waiting--;
      this.#forget(who, asking);
      reject(error);
    };
    const timer = setTimeout(giveUp(tooLong()), this.#limits.waitMs);
    const leave = giveUp(gone());
    signal?.addEventListener('abort', leave, { once: true });
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', leave);
    }
  }

  #mayRun({ running }: Asking): boolean {
    return this.#running < this.#limits.atOnce && running < this.#limits.atOncePerCaller;
  }

  #start(asking: Asking): void {
    this.#running++;
    asking.running++;
    asking.servedAt = ++this.#served;
  }

  #startNext(): void {
    for (;;) {
      let next: { readonly waiting: Waiting; readonly asking: Asking } | null = null;
      for (const waiting of this.#queue) {
        const asking = this.#asking.get(waiting.who) as Asking;
        if (this.#mayRun(asking) && (next === null || comesBefore(asking, next.asking))) next = { waiting, asking };
      }
      if (next === null) return;
      this.#queue.splice(this.#queue.indexOf(next.waiting), 1);
      next.asking.waiting--;
      this.#start(next.asking);
      next.waiting.start();
    }
  }

  #forget(who: string, { running, waiting }: Asking): void {
    if (running === 0 && waiting === 0) this.#asking.delete(who);
  }
}

function comesBefore(a: Asking, b: Asking): boolean {
  return a.running < b.running || (a.running === b.running && a.servedAt < b.servedAt);
}

function tooLong(): UnavailableError {
  return new UnavailableError('Too many such calls are waiting; please retry', { retryAfterSeconds });
}

function gone(): UnavailableError {
  return new UnavailableError('The client is gone');
}
