import type { Config } from '../platform/config/config.ts';
import type { Database } from '../platform/db/database.ts';
import { repeatAtStart } from '../platform/db/postgres-start.ts';
import type { Logger } from '../platform/logger/logger.ts';
import type { Metrics } from '../platform/telemetry/metrics.ts';
import { endRevokedLeases, noteEnded } from '../updates/end-revoked-leases.ts';
import { applyBootstrap } from './bootstrap.ts';

/** For a process that serves the API. Also cancels the updates that lose their lease. Throws BootstrapError and PartUnavailableError. */
export async function bootstrapAtStart(context: {
  readonly config: Config;
  readonly db: Database;
  readonly logger: Logger;
  readonly metrics: Metrics;
}): Promise<void> {
  const { config, db, logger } = context;
  if (config.bootstrapFile === null) return;
  // Most processes have no bootstrap file and need no parser.
  const { readBootstrapFile } = await import('./read-bootstrap-file.ts');
  const file = readBootstrapFile(config.bootstrapFile);
  const wait = { waitMs: config.startWaitMs, logger };
  const { removed, warnings } = await repeatAtStart(() => applyBootstrap(db, file), wait);
  for (const sentence of removed) logger.warn(`bootstrap file: ${sentence}`);
  for (const sentence of warnings) logger.warn(`bootstrap file: ${sentence}`);
  for (const update of await repeatAtStart(() => endRevokedLeases(db), wait)) noteEnded(context, update);
}
