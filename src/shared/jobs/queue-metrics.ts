import type { Metrics } from '../platform/telemetry/metrics.ts';
import type { RedisState } from './queue-monitor.ts';
import { type QueueState, type QueueStates, queueNames } from './queue-names.ts';

/** The gauges are read on each scrape. */
export function registerQueueGauges(metrics: Metrics, state: () => QueueStates): void {
  const byQueue = (read: (queue: QueueState) => number) => () =>
    Object.fromEntries(queueNames.map((name) => [name, read(state()[name])]));
  metrics.gaugeBy(
    'holdfast_jobs_waiting',
    'Jobs waiting for a worker or for their next attempt.',
    'queue',
    byQueue((queue) => queue.waiting),
  );
  metrics.gaugeBy(
    'holdfast_jobs_active',
    'Jobs running.',
    'queue',
    byQueue((queue) => queue.active),
  );
  metrics.gaugeBy(
    'holdfast_jobs_failed',
    'Failed jobs that are kept for inspection.',
    'queue',
    byQueue((queue) => queue.failed),
  );
  metrics.gaugeBy(
    'holdfast_jobs_oldest_waiting_seconds',
    'Age of the oldest waiting job.',
    'queue',
    byQueue((queue) => queue.oldestWaitingMs / 1000),
  );
}

export function registerRedisMetrics(metrics: Metrics, state: () => RedisState): void {
  metrics.gauge('holdfast_redis_up', 'Whether Redis answered the last probe.', () => (state().up ? 1 : 0));
  metrics.gauge(
    'holdfast_redis_round_trip_seconds',
    'Round trip to Redis at the last probe.',
    () => state().roundTripMs / 1000,
  );
  metrics.gauge(
    'holdfast_redis_memory_bytes',
    'Memory used by Redis; in a cluster, by the master that is closest to its limit.',
    () => state().memoryBytes,
  );
  metrics.gauge(
    'holdfast_redis_memory_limit_bytes',
    'Memory limit (maxmemory) of this Redis or master. 0 is no limit.',
    () => state().memoryLimitBytes,
  );
}
