import type { AppContext } from '../../shared/context.ts';
import type { RunRepository } from '../../shared/platform/maintenance/run-repository.ts';

/** One kind of maintenance, done by one process at a time. */
export interface Maintenance {
  readonly name: string;
  /** Time between the beginnings of two runs, in seconds, when it is not that of the sweeps. */
  readonly everySeconds?: number;
  /** Called at every turn in every process, done or not. */
  observe?(): Promise<void>;
  /** Does the work; leaves early when the signal fires, which loses nothing. `place` is where an earlier turn has come to. */
  run(signal: AbortSignal, claim: { readonly place: string | null; readonly holder: string }): Promise<unknown>;
}

/** After a process that was killed in the middle, others wait for as long. */
const claimSeconds = 30;
/** Timers are not exact; a replica that comes a little early must not wait for a whole turn. */
const slack = 0.9;

/**
 * Asks every `config.sweepSeconds` whether this kind of maintenance is to be done, and does it when no other process does.
 * A failed run is logged and comes round again. Returns what stops it, at the next place where it may.
 */
export function startMaintenance(
  { config, logger, metrics }: Pick<AppContext, 'config' | 'logger' | 'metrics'>,
  runs: RunRepository,
  holder: string,
  { everySeconds = config.sweepSeconds, name, observe, run }: Maintenance,
): () => Promise<void> {
  const stop = new AbortController();
  let running: Promise<void> | null = null;

  const turn = async (): Promise<void> => {
    const lost = new AbortController();
    const signal = AbortSignal.any([stop.signal, lost.signal]);
    let renewing: NodeJS.Timeout | undefined;
    try {
      await observe?.();
      const claim = await runs.claim(name, holder, { claimSeconds, everySeconds: everySeconds * slack });
      if (!claim) return;
      renewing = setInterval(
        () => {
          // Without an answer the claim may be lost; two runs at once are safe, if a waste, and the next renewal will tell.
          runs.renew(name, holder, claimSeconds).then(
            (isHeld) => isHeld || lost.abort(),
            () => {},
          );
        },
        (claimSeconds * 1000) / 3,
      );
      renewing.unref();
      try {
        await run(signal, { ...claim, holder });
        metrics.maintenanceRuns.labels(name, 'done').inc();
      } finally {
        clearInterval(renewing);
        await runs.release(name, holder);
      }
    } catch (error) {
      metrics.maintenanceRuns.labels(name, 'failed').inc();
      logger.warn({ sweep: name, err: error }, 'sweep failed');
    }
  };

  const timer = setInterval(() => {
    running ??= turn().finally(() => {
      running = null;
    });
  }, config.sweepSeconds * 1000);
  timer.unref();
  return async () => {
    clearInterval(timer);
    stop.abort();
    await running;
  };
}
