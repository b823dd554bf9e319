import type { Metrics } from '../platform/telemetry/metrics.ts';
import type { RedisState } from './queue-monitor.ts';
import { lanes, type QueueState, type QueueStates } from './queue-names.ts';

/** Depth and age of the queues, read when metrics are scraped. */
export function registerQueueGauges(metrics: Metrics, state: () => QueueStates): void {
  const byQueue = (read: (lane: QueueState) => number) => () =>
    Object.fromEntries(lanes.map((lane) => [lane, read(state()[lane])]));
  metrics.gaugeBy(
    'holdfast_jobs_waiting',
    'Jobs waiting for a worker or for their next attempt.',
    'queue',
    byQueue((lane) => lane.waiting),
  );
  metrics.gaugeBy(
    'holdfast_jobs_active',
    'Jobs running.',
    'queue',
    byQueue((lane) => lane.active),
  );
  metrics.gaugeBy(
    'holdfast_jobs_failed',
    'Failed jobs that are kept for inspection.',
    'queue',
    byQueue((lane) => lane.failed),
  );
  metrics.gaugeBy(
    'holdfast_jobs_oldest_waiting_seconds',
    'Age of the oldest waiting job.',
    'queue',
    byQueue((lane) => lane.oldestWaitingMs / 1000),
  );
}

/** Whether Redis answers, how fast, and how full it is. */
export function registerRedisMetrics(metrics: Metrics, state: () => RedisState): void {
  metrics.gauge('holdfast_redis_up', 'Whether Redis answered the last probe.', () => (state().up ? 1 : 0));
  metrics.gauge(
    'holdfast_redis_round_trip_seconds',
    'Round trip to Redis at the last probe.',
    () => state().roundTripMs / 1000,
  );
  metrics.gauge('holdfast_redis_memory_bytes', 'Memory used by Redis.', () => state().memoryBytes);
  metrics.gauge(
    'holdfast_redis_memory_limit_bytes',
    'Memory limit of Redis (maxmemory). 0 is no limit.',
    () => state().memoryLimitBytes,
  );
}
