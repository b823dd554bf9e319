import type { AppContext } from '../../shared/context.ts';
import { listManagementExposures, managementSetting } from '../../shared/platform/config/exposure.ts';
import { type HealthResponse, startStatusServer } from '../../shared/platform/telemetry/status-server.ts';

const healthLimitMs = 2_000;

/** Serves health, readiness and metrics of a worker process on the management address. Returns its base URL. */
export async function startHealthServer(context: AppContext): Promise<string> {
  const { blobs, config, db, logger, payloads, lifecycle, metrics } = context;
  const listen = config.managementListen ?? config.listen;
  for (const exposure of listManagementExposures(listen)) logger.warn(exposure);
  let draining = false;
  const database = (): Promise<void> => db.ping(healthLimitMs);
  const checks = {
    database,
    redis: () => payloads.check(healthLimitMs),
    blobs: () => blobs.check(healthLimitMs),
  };
  const server = await startStatusServer(listen, {
    health: { healthz: () => check({ database }, false), readyz: () => check(checks, draining) },
    registry: metrics.registry,
    setting: managementSetting,
  });
  lifecycle.onClose('intake', 'readiness', async () => {
    draining = true;
  });
  lifecycle.onClose('queues', 'health server', async () => server.close());
  return server.url;
}

async function check(
  checks: Readonly<Record<string, () => Promise<void>>>,
  draining: boolean,
): Promise<HealthResponse> {
  const results = await Promise.all(
    Object.entries(checks).map(async ([name, run]) => {
      const isOk = await run().then(
        () => true,
        () => false,
      );
      return [name, isOk ? 'ok' : 'unreachable'] as const;
    }),
  );
  const ready = !draining && results.every(([, result]) => result === 'ok');
  const status = draining ? 'draining' : ready ? 'ready' : 'not ready';
  return { status: ready ? 200 : 503, body: { status, ...Object.fromEntries(results) } };
}
