import { setTimeout as delay } from 'node:timers/promises';
import type { AppContext } from '../../shared/context.ts';
import { createVersionRepository, type VersionRepository } from '../../shared/state/version-repository.ts';
import type { BackgroundTask } from '../platform/background-task.ts';
import { assertStoreReachable } from '../platform/store-reachable.ts';
import { VersionEncoder } from './version-encoder.ts';

const batchSize = 50;
/** Per state, for the fixed cost of its statements. */
const minChargeBytes = 16 * 1024;
/** A state that could not be encoded waits this long. */
const failedSeconds = 3600;
const countedStates = 10_000;

/**
 * Creates the task that encodes older versions, at `config.encoding.bytesPerSecond` of their text. A run ends when nothing is due,
 * or after the current state when the signal is aborted.
 */
export function encodeInSlices(context: AppContext): BackgroundTask {
  const versions = createVersionRepository(context.db);
  let backlog = 0;
  context.metrics.gauge(
    'holdfast_versions_to_encode',
    `States that are due for encoding, counted up to ${countedStates}, as of the last sweep interval.`,
    () => backlog,
  );
  return {
    name: 'encode-versions',
    observe: async () => {
      backlog = await versions.countDue(countedStates);
    },
    run: async (signal) => {
      await encodeVersions(context, { signal, versions });
      while ((await context.chunks.sweep(batchSize)) === batchSize && !signal.aborted);
    },
  };
}

/** Encodes due states, and deletes some unneeded chunks after each batch. Returns the number of encoded versions. */
export async function encodeVersions(
  context: AppContext,
  options: { signal?: AbortSignal; versions?: VersionRepository; encoder?: VersionEncoder } = {},
): Promise<number> {
  const { config, logger, metrics } = context;
  const { signal, versions = createVersionRepository(context.db) } = options;
  const encoder = options.encoder ?? new VersionEncoder({ ...context, versions });
  let encoded = 0;
  for (;;) {
    const due = await versions.listDue(batchSize);
    for (const state of due) {
      if (signal?.aborted) return encoded;
      try {
        const done = await encoder.encodeDue(state, signal);
        encoded += done.encoded;
        metrics.versionsEncoded.labels('encoded').inc(done.encoded - done.shared);
        metrics.versionsEncoded.labels('shared').inc(done.shared);
        metrics.versionBytesSaved.inc(done.savedBytes);
        const pauseMs = (1000 * Math.max(minChargeBytes, done.textBytes)) / config.encoding.bytesPerSecond;
        await delay(pauseMs, undefined, signal && { signal }).catch(() => {});
      } catch (error) {
        if (signal?.aborted) return encoded;
        await assertStoreReachable(context.blobs, error);
        metrics.versionsEncoded.labels('failed').inc();
        metrics.tasksPostponed.labels('encode-versions').inc();
        logger.warn({ checkpointId: state.id, err: error }, 'older version could not be encoded; it stays as it is');
        await versions.postpone(state, failedSeconds);
      }
    }
    if (due.length < batchSize) return encoded;
    // Encoding may continue for days.
    await context.chunks.sweep(batchSize);
  }
}
