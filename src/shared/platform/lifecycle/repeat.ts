export interface Repeated {
  /** Also runs the work now, unless it is running. */
  now(): void;
  /** Aborts the signal, and waits for the current run. */
  stop(): Promise<void>;
}

/** One run at a time. The first begins after `everyMs` plus `delayMs`. Keeps no process alive. Without `onError`, `work` must not fail. */
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
