import { constants } from 'node:os';

/** The process. */
export interface SignalTarget {
  on(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): unknown;
  off(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): unknown;
  exit(code: number): void;
}

/** Until when another signal counts as the first one: Ctrl-C reaches a process from its terminal, and from npm or another parent. */
const sameSignalMs = 500;
/** SIGHUP: the terminal was closed. Node ignores none of them, whatever its parent does. */
const signals = ['SIGHUP', 'SIGINT', 'SIGTERM'] as const;

/** Calls `first` on SIGHUP, SIGINT or SIGTERM; a second signal calls `second`, and by default ends the process. Returns a function that undoes that. */
export function onEndSignal(
  first: (signal: NodeJS.Signals) => void,
  {
    now = () => performance.now(),
    target = process,
    second = (signal) => target.exit(exitCodeOf(signal)),
  }: { now?: () => number; target?: SignalTarget; second?: (signal: NodeJS.Signals) => void } = {},
): () => void {
  let firstAt: number | null = null;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (firstAt === null) {
      firstAt = now();
      first(signal);
    } else if (now() - firstAt >= sameSignalMs) second(signal);
  };
  for (const signal of signals) target.on(signal, onSignal);
  return () => {
    for (const signal of signals) target.off(signal, onSignal);
  };
}

/** As a shell reports a process that the signal has ended. */
export function exitCodeOf(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}
