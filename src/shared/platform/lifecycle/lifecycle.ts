import type { Logger } from '../logger/logger.ts';
import { withTimeout } from '../timeout/with-timeout.ts';

type Phase = 'drain' | 'intake' | 'work' | 'queues' | 'stores' | 'processes';

/**
 * Shutdown order: make the proxy stop sending requests, stop accepting them, finish work, close queues, close pools and
 * stores, stop child processes.
 */
const phases: readonly Phase[] = ['drain', 'intake', 'work', 'queues', 'stores', 'processes'];

interface Closer {
  readonly name: string;
  readonly phase: Phase;
  readonly close: () => Promise<void>;
}

/** Registers close callbacks and runs them in phases, each callback within a time limit. */
export class Lifecycle implements AsyncDisposable {
  readonly #closers: Closer[] = [];
  readonly #logger: Logger;
  readonly #phaseLimitMs: number;
  #closing: Promise<void> | undefined;

  constructor(logger: Logger, phaseLimitMs: number) {
    this.#logger = logger;
    this.#phaseLimitMs = phaseLimitMs;
  }

  onClose(phase: Phase, name: string, close: () => Promise<void>): void {
    this.#closers.push({ phase, name, close });
  }

  /** Runs all phases once; later calls wait for the same run. Never rejects: failures are logged. */
  close(): Promise<void> {
    this.#closing ??= this.#closeAll();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #closeAll(): Promise<void> {
    for (const phase of phases) {
      const closers = this.#closers.filter((closer) => closer.phase === phase).reverse();
      // Within a phase, close one at a time in reverse order of registration: a pool must outlive its users.
      for (const closer of closers) await this.#closeOne(closer);
    }
  }

  async #closeOne({ name, phase, close }: Closer): Promise<void> {
    const limitMs = this.#phaseLimitMs;
    const late = new Error(`Not closed within ${limitMs} ms`);
    try {
      await withTimeout(close(), limitMs, () => late);
    } catch (error) {
      if (error === late) this.#logger.warn({ phase, part: name, limitMs }, 'shutdown: gave up waiting');
      else this.#logger.warn({ phase, part: name, err: error }, 'shutdown: part failed to close');
    }
  }
}

/** On SIGINT or SIGTERM, closes `lifecycle` and exits the process. A second signal exits at once. */
export function closeOnSignal(lifecycle: Lifecycle, logger: Logger): void {
  let signalled = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (signalled) {
      logger.warn({ signal }, 'second signal: exiting at once');
      process.exit(1);
    }
    signalled = true;
    logger.info({ signal }, 'shutting down');
    void lifecycle.close().then(() => {
      logger.info('stopped');
      process.exit(0);
    });
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
}
