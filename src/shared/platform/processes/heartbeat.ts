import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { holdfastVersion } from '../config/config.ts';
import type { Database } from '../db/database.ts';
import type { Lifecycle } from '../lifecycle/lifecycle.ts';
import { repeat } from '../lifecycle/repeat.ts';
import type { Logger } from '../logger/logger.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { beatSeconds, createProcessRepository } from './process-repository.ts';

export type ProcessRole = 'server' | 'api' | 'worker';

interface HeartbeatParts {
  readonly db: Database;
  readonly lifecycle: Lifecycle;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** Without a report for this time, the process has lost the database. */
const lostMs = 2.5 * beatSeconds * 1000;

/** For operators: nothing depends on these reports. Also sets the role in the metrics. */
export function startHeartbeat({ db, lifecycle, logger, metrics }: HeartbeatParts, role: ProcessRole): void {
  metrics.buildInfo.labels(role, holdfastVersion).set(1);
  const who = { id: randomUUID(), role, version: holdfastVersion, host: hostname().slice(0, 200), pid: process.pid };
  const processes = createProcessRepository(db);
  const loop = monitorEventLoopDelay({ resolution: 20 });
  loop.enable();
  let usage = process.cpuUsage();
  let at = performance.now();
  let reportedAt = at;
  metrics.gauge('holdfast_database_up', 'Whether this process could write to Postgres in the last 25 seconds.', () =>
    performance.now() - reportedAt < lostMs ? 1 : 0,
  );
  const beat = async (): Promise<void> => {
    const now = performance.now();
    const { system, user } = process.cpuUsage(usage);
    const cpu = (system + user) / 1000 / Math.max(1, now - at);
    const loopMs = loop.count === 0 ? 0 : Math.max(0, loop.max / 1e6 - 20);
    usage = process.cpuUsage();
    at = now;
    loop.reset();
    await processes.beat({ ...who, upSeconds: process.uptime(), rssBytes: process.memoryUsage.rss(), cpu, loopMs });
    reportedAt = performance.now();
    await processes.removeGone();
  };
  const beats = repeat(beatSeconds * 1000, beat, (error) =>
    logger.debug({ err: error }, 'the process could not report that it is alive'),
  );
  beats.now();
  lifecycle.onClose('work', 'heartbeat', async () => {
    loop.disable();
    await beats.stop();
    await processes.remove(who.id);
  });
}
