export interface Repeated {
  /** Runs the work now, too, unless it runs. */
  now(): void;
  /** Begins no more runs, aborts the signal, and waits for the run that goes on. */
  stop(): Promise<void>;
}

/**
 * Runs `work` every `everyMs`, one run at a time, for the first time after `everyMs` and `delayMs`. Keeps no process alive. Without `onError`,
 * `work` must not fail.
 */
export function repeat(
  everyMs: number,
  work: (signal: AbortSignal) => Promise<unknown>,
  onError?: (error: unknown) => void,
  delayMs = 0,
): Repeated {
  const abort = new AbortController();
  let running: Promise<unknown> | null = null;
  const now = (): void => {
    running ??= work(abort.signal)
      .catch(onError)
      .finally(() => {
        running = null;
      });
  };
  let timer = setTimeout(() => {
    timer = setInterval(now, everyMs).unref();
  }, delayMs).unref();
  return {
    now,
    stop: async () => {
      clearInterval(timer);
      abort.abort();
      await running;
    },
  };
}
