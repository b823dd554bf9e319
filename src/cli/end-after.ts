import { exitCodeOf, onEndSignal } from '../shared/platform/lifecycle/end-signals.ts';

/**
 * Ends the process after `work` on the first signal, and at once on a second one. Returns a function that removes the handlers; after a
 * signal, it never returns, so that an error caused by `work` does not end the process with another code.
 */
export function endAfter(work: () => Promise<void>): () => Promise<void> {
  let ending: Promise<void> | null = null;
  const forget = onEndSignal((signal) => {
    ending = work().finally(() => process.exit(exitCodeOf(signal)));
  });
  return async () => {
    if (ending === null) forget();
    await ending;
  };
}
