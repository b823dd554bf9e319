import { constants } from 'node:os';

export interface SignalTarget {
  on(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): unknown;
  off(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): unknown;
  exit(code: number): void;
}

/** Signals within this time count as one: Ctrl-C reaches a process from its terminal, and from npm or another parent. */
const sameSignalMs = 500;
/** SIGHUP means that the terminal was closed. Node ignores none of these signals, whatever its parent does. */
const signals = ['SIGHUP', 'SIGINT', 'SIGTERM'] as const;

/** By default, a second signal ends the process. Returns a function that stops listening. */
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

/** Returns the exit code that a shell reports. */
export function exitCodeOf(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}
