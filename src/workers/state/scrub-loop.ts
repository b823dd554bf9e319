import type { AppContext } from '../../shared/context.ts';
import { repeat } from '../../shared/platform/lifecycle/repeat.ts';
import { Scrubber } from './scrub.ts';

const tickMs = 5_000;

/** Scrubs at the configured rate until the context closes, and updates the metrics of damaged documents. */
export function startScrub(context: AppContext): void {
  const { config, documentChecks, eventSegments, lifecycle, logger, metrics, policyArchives, readOnly } = context;
  const { bytesPerSecond, periodSeconds } = config.scrub;
  const scrubber = new Scrubber(context, { bytesPerSecond, periodSeconds, burstMs: 2 * tickMs });
  // Otherwise, the first increment would begin a series at 1, which is no increase.
  metrics.tasksPostponed.labels('scrub').inc(0);
  let statistics = { damaged: 0, oldestSeconds: Number.NaN, readAt: performance.now() };
  metrics.gauge(
    'holdfast_documents_damaged',
    'Stored documents known to be damaged that could not be replaced.',
    () => statistics.damaged,
  );
  if (bytesPerSecond > 0) {
    metrics.gauge(
      'holdfast_documents_oldest_check_age_seconds',
      'Time since the least recently checked document was read back, or written.',
      // Also continues while the statistics cannot be read. There is no value before the first read: a small value would end the alert.
      () => statistics.oldestSeconds + (performance.now() - statistics.readAt) / 1000,
    );
  }

  const readStatistics = async (): Promise<void> => {
    const [documents, segments] = [await documentChecks.readStatistics(), await eventSegments.readStatistics()];
    const archives = await policyArchives.readStatistics();
    statistics = {
      damaged: documents.damaged + segments.damaged + archives.damaged,
      oldestSeconds: Math.max(documents.oldestSeconds, segments.oldestSeconds, archives.oldestSeconds),
      readAt: performance.now(),
    };
  };
  let since = performance.now();
  const scrub = async (stop: AbortSignal): Promise<void> => {
    const now = performance.now();
    const elapsedMs = now - since;
    since = now;
    if (bytesPerSecond > 0 && !readOnly.isFenced)
      await scrubber.run(elapsedMs, AbortSignal.any([stop, readOnly.fenceSignal]));
  };
  const warn = (error: unknown): void => logger.warn({ err: error }, 'scrub failed');
  // Separate, because a run may read for minutes.
  const readings = repeat(tickMs, readStatistics, warn);
  const runs = repeat(tickMs, scrub, warn);
  lifecycle.onClose('work', 'scrub', async () => {
    await Promise.all([readings.stop(), runs.stop()]);
  });
}
