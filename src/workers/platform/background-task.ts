import type { AppContext } from '../../shared/context.ts';
import type { BackgroundTaskRepository } from '../../shared/platform/background-tasks/background-task-repository.ts';
import { repeat } from '../../shared/platform/lifecycle/repeat.ts';
import { inLoneSpan } from '../../shared/platform/tracing/tracing.ts';
import { mayDeleteByAge } from './clock-watch.ts';

/** The task runs in one process at a time. */
export interface BackgroundTask {
  readonly name: string;
  /** Between the starts of two runs. The sweep interval by default. */
  readonly everySeconds?: number;
  /** Deletes old data for good, so the task pauses while Postgres's clock may be far ahead, and until a restored database takes over. */
  readonly deletesByAge?: boolean;
  /** Called at every interval in every process, whether or not the task runs there. */
  observe?(): Promise<void>;
  /**
   * May stop early when the signal fires, without losing work. `position` is the point where an earlier run stopped. A number as the result
   * reports the amount of work, for operators.
   */
  run(signal: AbortSignal, claim: { readonly position: string | null; readonly holder: string }): Promise<unknown>;
}

/** Maximum wait of other processes after the process that runs the task is killed. */
const claimSeconds = 30;
/** The share of the interval that must have passed. A timer that fires slightly early must not wait for another interval. */
const intervalTolerance = 0.9;

/**
 * Checks every `config.sweepSeconds`, beginning after `delayMs`, whether the task is due, and runs it unless another process does. Failed
 * runs are retried. Once another site has taken over, no run begins or continues. Returns a function that stops the task at the next safe
 * point.
 */
export function startBackgroundTask(
  { config, logger, metrics, readOnly }: Pick<AppContext, 'config' | 'logger' | 'metrics' | 'readOnly'>,
  runs: BackgroundTaskRepository,
  holder: string,
  { deletesByAge = false, everySeconds = config.sweepSeconds, name, observe, run }: BackgroundTask,
  delayMs = 0,
): () => Promise<void> {
  const round = async (stop: AbortSignal): Promise<void> => {
    if (readOnly.isFenced) return;
    const lost = new AbortController();
    const signal = AbortSignal.any([stop, lost.signal, readOnly.fenceSignal]);
    let renewing: NodeJS.Timeout | undefined;
    try {
      // The task runs even if `observe` fails.
      await observe?.().catch((error: unknown) => {
        logger.warn({ task: name, err: error }, 'the observed values of a task could not be read');
      });
      if (deletesByAge && !(await mayDeleteByAge(runs))) return;
      const claim = await runs.claim(name, holder, { claimSeconds, everySeconds: everySeconds * intervalTolerance });
      if (!claim) return;
      renewing = setInterval(
        () => {
          // Ignore errors: the next renewal shows whether the claim is lost. Two concurrent runs are safe, only wasteful.
          runs.renew(name, holder, claimSeconds).then(
            (isHeld) => isHeld || lost.abort(),
            () => {},
          );
        },
        (claimSeconds * 1000) / 3,
      );
      renewing.unref();
      try {
        const result = await inLoneSpan(`task ${name}`, () => run(signal, { ...claim, holder }));
        metrics.taskRuns.labels(name, 'done').inc();
        clearInterval(renewing);
        await runs.release(name, holder, typeof result === 'number' ? result : null);
      } catch (error) {
        clearInterval(renewing);
        await runs.releaseFailed(name, holder, error instanceof Error ? error.message : String(error));
        throw error;
      }
    } catch (error) {
      metrics.taskRuns.labels(name, 'failed').inc();
      logger.warn({ task: name, err: error }, 'task failed');
    }
  };

  return repeat(config.sweepSeconds * 1000, round, undefined, delayMs).stop;
}
