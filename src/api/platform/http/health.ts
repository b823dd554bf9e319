import { setTimeout as sleep } from 'node:timers/promises';
import type { AppContext } from '../../../shared/context.ts';
import type { JobDispatcher } from '../../../shared/jobs/dispatcher.ts';
import type { ProcessHealth } from '../../../shared/platform/telemetry/status-server.ts';

/** Below the 3 s timeout of the container's health check. */
const healthLimitMs = 2_000;
/** Proxies probe each replica every second, and a cloud charges for each request to its store. */
const blobsRememberedMs = 10_000;

/** The process is draining from the first phase of its shutdown. */
export function createHealth(context: AppContext, dispatcher: JobDispatcher): ProcessHealth {
  const { config, db, blobs, payloads, lifecycle } = context;
  const database = shareRun(() => faultOf(() => db.ping(healthLimitMs)));
  const blobStore = rememberPass(
    blobsRememberedMs,
    shareRun(() => faultOf(() => blobs.check(healthLimitMs))),
  );
  const queue = shareRun(() => faultOf(() => payloads.check(healthLimitMs)));
  let draining = false;
  lifecycle.onClose('drain', 'readiness', async () => {
    draining = true;
    await sleep(config.drainMs);
  });
  return {
    async healthz() {
      const fault = await database();
      return fault
        ? { status: 503, body: { status: 'unhealthy', database: fault } }
        : { status: 200, body: { status: 'healthy' } };
    },
    async readyz() {
      // Answered without the checks, which may be slow: a proxy must learn that the server drains before it stops listening.
      if (draining) return { status: 503, body: { status: 'draining' } };
      const [databaseFault, blobFault, queueFault] = await Promise.all([database(), blobStore(), queue()]);
      // Without blobs or queue, most calls still succeed, and all other replicas lack them too. Removing every replica would turn a partial
      // failure into a full outage.
      const ready = !databaseFault;
      const degraded = blobFault !== null || queueFault !== null;
      return {
        status: ready ? 200 : 503,
        body: {
          status: ready ? (degraded ? 'degraded' : 'ready') : 'not ready',
          database: databaseFault ?? 'ok',
          blobs: blobFault ?? 'ok',
          queue: queueFault ?? 'ok',
          jobs: dispatcher.state(),
          payloadStoreBytes: payloads.bytesHeld(),
        },
      };
    },
  };
}

/** Why a check failed, without details that an attacker could use. */
async function faultOf(check: () => Promise<void>): Promise<string | null> {
  try {
    await check();
    return null;
  } catch {
    return 'unreachable';
  }
}

/** Many probes cost no more than one. */
function shareRun<T>(check: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | null = null;
  return () => {
    running ??= check().finally(() => {
      running = null;
    });
    return running;
  };
}

/** A failed check runs again each time, so that a recovery shows at once. */
function rememberPass(ms: number, check: () => Promise<string | null>): () => Promise<string | null> {
  let passedAt = Number.NEGATIVE_INFINITY;
  return async () => {
    if (performance.now() - passedAt < ms) return null;
    const fault = await check();
    if (fault === null) passedAt = performance.now();
    return fault;
  };
}
