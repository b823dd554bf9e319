import { TooManyRequestsError, UnavailableError } from '../../../shared/platform/errors/errors.ts';
import type { Caller } from '../http/request.ts';

/** Limits on running and waiting calls of a process. */
export interface SemaphoreLimits {
  readonly atOnce: number;
  readonly atOncePerCaller?: number;
  readonly atOncePerOrganization?: number;
  readonly waiting?: number;
  readonly waitingPerCaller?: number;
  readonly waitMs?: number;
}

/**
 * A user or token, or all callers that share a name. Callers of one organization also share a limit, because an organization can have any
 * number of tokens.
 */
type Asker = (Pick<Caller, 'tokenId' | 'userId'> & { readonly organization?: string | undefined }) | string;

/** Limits of a single call, which replace the general ones. */
type OwnLimits = Pick<SemaphoreLimits, 'waitMs' | 'waitingPerCaller'>;

/** The state of a caller or an organization. */
interface Asking {
  running: number;
  waiting: number;
  /** Sequence number of the last started call; 0: none. */
  servedAt: number;
}

interface Askers {
  readonly who: string;
  readonly organization: string;
  readonly own: Asking;
  readonly shared: Asking;
}

interface Waiting extends Askers {
  readonly start: () => void;
  readonly giveUp: () => void;
}

const defaults = { waiting: 100, waitingPerCaller: 20, waitMs: 20_000 };
const retryAfterSeconds = 5;

class OwnQueueError extends TooManyRequestsError {
  override readonly name = 'OwnQueueError';
  override readonly code = 'own-queue';
}

/**
 * Lets a few calls of a process run at once. The next waiting call comes from the organization and caller with the fewest running calls; a
 * tie goes to the least recently served one. So no caller waits for all earlier calls of another. To admit a call, a full queue drops one
 * of the organization and caller with the most waiting calls.
 */
export class FairSemaphore {
  readonly #limits: Required<SemaphoreLimits>;
  readonly #callers = new Map<string, Asking>();
  readonly #organizations = new Map<string, Asking>();
  /** In the order of their arrival. */
  readonly #queue: Waiting[] = [];
  #running = 0;
  #served = 0;

  constructor(limits: SemaphoreLimits) {
    const { atOnce } = limits;
    this.#limits = { ...defaults, atOncePerCaller: atOnce, atOncePerOrganization: atOnce, ...limits };
  }

  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#queue.length;
  }

  /** Throws the errors of `take` and of `work`. */
  async run<T>(caller: Asker, signal: AbortSignal | null, work: () => Promise<T>, own: OwnLimits = {}): Promise<T> {
    const end = await this.take(caller, signal, own);
    try {
      return await work();
    } finally {
      end();
    }
  }

  /**
   * The slot is kept until the returned function is called, even if `signal` is aborted meanwhile: started work still runs. Throws
   * OwnQueueError, UnavailableError.
   */
  async take(caller: Asker, signal: AbortSignal | null, own: OwnLimits = {}): Promise<() => void> {
    if (signal?.aborted) throw gone();
    const askers = this.#askersOf(caller);
    if (this.#mayRun(askers)) this.#start(askers);
    else await this.#wait(askers, signal, { ...this.#limits, ...own });
    let isEnded = false;
    return () => {
      if (isEnded) return;
      isEnded = true;
      this.#running--;
      askers.own.running--;
      askers.shared.running--;
      this.#forget(askers);
      this.#startNext();
    };
  }

  #askersOf(caller: Asker): Askers {
    const who = typeof caller === 'string' ? caller : (caller.userId ?? caller.tokenId);
    const organization = typeof caller === 'string' ? who : (caller.organization ?? who);
    const stateIn = (all: Map<string, Asking>, name: string): Asking => {
      const asking = all.get(name) ?? { running: 0, waiting: 0, servedAt: 0 };
      all.set(name, asking);
      return asking;
    };
    const [own, shared] = [stateIn(this.#callers, who), stateIn(this.#organizations, organization)];
    return { who, organization, own, shared };
  }

  async #wait(askers: Askers, signal: AbortSignal | null, limits: Required<SemaphoreLimits>): Promise<void> {
    if (askers.own.waiting >= limits.waitingPerCaller) {
      this.#forget(askers);
      throw new OwnQueueError(
        `You have ${askers.own.waiting} calls of this kind waiting; please retry when some have been answered`,
        { retryAfterSeconds },
      );
    }
    const { promise, reject, resolve } = Promise.withResolvers<void>();
    const giveUp = (error: UnavailableError) => () => {
      const at = this.#queue.indexOf(waiting);
      if (at < 0) return;
      this.#queue.splice(at, 1);
      askers.own.waiting--;
      askers.shared.waiting--;
      this.#forget(askers);
      reject(error);
    };
    const waiting: Waiting = { ...askers, start: resolve, giveUp: giveUp(tooLong()) };
    this.#queue.push(waiting);
    askers.own.waiting++;
    askers.shared.waiting++;
    // Drops the newest call of the caller with the most waiting calls, perhaps this one.
    if (this.#queue.length > limits.waiting)
      this.#queue.reduce((most, each) => (compare(waitingOf(each), waitingOf(most)) >= 0 ? each : most)).giveUp();
    const timer = setTimeout(waiting.giveUp, limits.waitMs);
    const leave = giveUp(gone());
    signal?.addEventListener('abort', leave, { once: true });
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', leave);
    }
  }

  #mayRun({ own, shared }: Askers): boolean {
    const { atOnce, atOncePerCaller, atOncePerOrganization } = this.#limits;
    return this.#running < atOnce && own.running < atOncePerCaller && shared.running < atOncePerOrganization;
  }

  #start({ own, shared }: Askers): void {
    this.#running++;
    this.#served++;
    for (const asking of [own, shared]) {
      asking.running++;
      asking.servedAt = this.#served;
    }
  }

  #startNext(): void {
    for (;;) {
      let next: Waiting | null = null;
      for (const waiting of this.#queue)
        if (this.#mayRun(waiting) && (next === null || compare(servedOf(waiting), servedOf(next)) < 0)) next = waiting;
      if (next === null) return;
      this.#queue.splice(this.#queue.indexOf(next), 1);
      next.own.waiting--;
      next.shared.waiting--;
      this.#start(next);
      next.start();
    }
  }

  #forget({ organization, own, shared, who }: Askers): void {
    if (own.running === 0 && own.waiting === 0) this.#callers.delete(who);
    if (shared.running === 0 && shared.waiting === 0) this.#organizations.delete(organization);
  }
}

/** The larger of the two values counts, because a caller can be in any number of organizations. */
function servedOf({ own, shared }: Askers): readonly number[] {
  const both = [Math.max(own.running, shared.running), Math.max(own.servedAt, shared.servedAt)];
  return [...both, own.running, own.servedAt];
}

function waitingOf({ own, shared }: Askers): readonly number[] {
  return [Math.max(own.waiting, shared.waiting), own.waiting];
}

/** Below 0 if `a` comes first. */
function compare(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((each, index) => each !== b[index]);
  return at < 0 ? 0 : (a[at] as number) - (b[at] as number);
}

function tooLong(): UnavailableError {
  return new UnavailableError('Too many calls of this kind are waiting; please retry', { retryAfterSeconds });
}

function gone(): UnavailableError {
  return new UnavailableError('The client has disconnected');
}
