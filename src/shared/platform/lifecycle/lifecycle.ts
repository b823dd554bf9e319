import type { Logger } from '../logger/logger.ts';
import { withTimeout } from '../timeout/with-timeout.ts';
import { onEndSignal, type SignalTarget } from './end-signals.ts';

type Phase = 'drain' | 'intake' | 'work' | 'queues' | 'stores' | 'processes';

/**
 * In order: make the proxy stop sending requests, stop accepting them, finish work, close queues, close pools and stores, stop child
 * processes.
 */
const phases: readonly Phase[] = ['drain', 'intake', 'work', 'queues', 'stores', 'processes'];

interface Closer {
  readonly name: string;
  readonly phase: Phase;
  readonly close: () => Promise<void>;
}

/** `shutdownMs` is for everything after the drain. */
export interface ShutdownLimits {
  readonly drainMs: number;
  readonly shutdownMs: number;
}

/** A single deadline applies to all callbacks. */
export class Lifecycle implements AsyncDisposable {
  readonly #closers: Closer[] = [];
  readonly #logger: Logger;
  readonly #limits: ShutdownLimits;
  #closing: Promise<void> | undefined;

  constructor(logger: Logger, limits: ShutdownLimits) {
    this.#logger = logger;
    this.#limits = limits;
  }

  /** True from the beginning of the first phase. */
  get isClosing(): boolean {
    return this.#closing !== undefined;
  }

  onClose(phase: Phase, name: string, close: () => Promise<void>): void {
    this.#closers.push({ phase, name, close });
  }

  /** Later calls wait for the same run. Never rejects: failures are logged. */
  close(): Promise<void> {
    this.#closing ??= this.#closeAll();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #closeAll(): Promise<void> {
    const { drainMs, shutdownMs } = this.#limits;
    const deadline = performance.now() + drainMs + shutdownMs;
    // Hanging callbacks leave a quarter of the time to the others, in equal parts.
    const reservedMs = shutdownMs / 4 / this.#closers.length;
    let left = this.#closers.length;
    for (const phase of phases) {
      const closers = this.#closers.filter((closer) => closer.phase === phase).reverse();
      // One at a time, in reverse order of registration: a pool must outlive its users.
      for (const closer of closers) {
        left--;
        await this.#closeOne(closer, Math.max(0, Math.round(deadline - performance.now() - left * reservedMs)));
      }
    }
  }

  async #closeOne({ name, phase, close }: Closer, limitMs: number): Promise<void> {
    const late = new Error(`Not closed within ${limitMs} ms`);
    try {
      await withTimeout(close(), limitMs, () => late);
    } catch (error) {
      if (error === late) this.#logger.warn({ phase, part: name, limitMs }, 'shutdown: gave up waiting');
      else this.#logger.warn({ phase, part: name, err: error }, 'shutdown: part failed to close');
    }
  }
}

/** A second signal exits at once. Returns whether a signal has arrived. */
export function closeOnSignal(
  lifecycle: Lifecycle,
  logger: Logger,
  { now = () => performance.now(), target = process }: { now?: () => number; target?: SignalTarget } = {},
): () => boolean {
  let isEnding = false;
  const first = (signal: NodeJS.Signals): void => {
    isEnding = true;
    logger.info({ signal }, 'shutting down');
    void lifecycle.close().then(() => {
      logger.info('stopped');
      target.exit(0);
    });
  };
  const second = (signal: NodeJS.Signals): void => {
    logger.warn({ signal }, 'second signal: exiting at once');
    target.exit(1);
  };
  onEndSignal(first, { now, target, second });
  return () => isEnding;
}
