import type { Metrics } from '../platform/telemetry/metrics.ts';
import { type LaneState, type LaneStates, lanes } from './lanes.ts';
import type { RedisState } from './queue-monitor.ts';

/** Depth and age of the lanes, read when the metrics are asked for. */
export function registerLaneMetrics(metrics: Metrics, state: () => LaneStates): void {
  const byLane = (read: (lane: LaneState) => number) => () =>
    Object.fromEntries(lanes.map((lane) => [lane, read(state()[lane])]));
  metrics.gaugeBy(
    'holdfast_jobs_waiting',
    'Jobs waiting for a worker or for their next attempt.',
    'lane',
    byLane((lane) => lane.waiting),
  );
  metrics.gaugeBy(
    'holdfast_jobs_active',
    'Jobs running.',
    'lane',
    byLane((lane) => lane.active),
  );
  metrics.gaugeBy(
    'holdfast_jobs_failed',
    'Jobs given up that are kept to be looked at.',
    'lane',
    byLane((lane) => lane.failed),
  );
  metrics.gaugeBy(
    'holdfast_jobs_oldest_waiting_seconds',
    'Age of the oldest waiting job.',
    'lane',
    byLane((lane) => lane.oldestWaitingMs / 1000),
  );
}

/** Whether Redis answers, how fast, and how full it is. */
export function registerRedisMetrics(metrics: Metrics, state: () => RedisState): void {
  metrics.gauge('holdfast_redis_up', 'Whether Redis answered at the last look.', () => (state().up ? 1 : 0));
  metrics.gauge(
    'holdfast_redis_round_trip_seconds',
    'Round trip to Redis at the last look.',
    () => state().roundTripMs / 1000,
  );
  metrics.gauge('holdfast_redis_memory_bytes', 'Memory that Redis uses.', () => state().memoryBytes);
  metrics.gauge(
    'holdfast_redis_memory_limit_bytes',
    'Memory that Redis may use; 0 is no limit.',
    () => state().memoryLimitBytes,
  );
}
