import { setTimeout as sleep } from 'node:timers/promises';
import type { AppContext } from '../shared/context.ts';
import type { JobDispatcher } from '../shared/jobs/dispatcher.ts';
import type { ProcessHealth } from '../shared/platform/telemetry/status-server.ts';

/** Below the 3 s that a container's health check waits. */
const healthLimitMs = 2_000;

/** How an API or server process is; draining from the first phase of its shutdown on. */
export function createHealth(context: AppContext, dispatcher: JobDispatcher): ProcessHealth {
  const { config, db, blobs, payloads, lifecycle } = context;
  const database = shared(() => faultOf(() => db.ping(healthLimitMs)));
  const blobStore = shared(() => faultOf(() => blobs.check(healthLimitMs)));
  const queue = shared(() => faultOf(() => payloads.check(healthLimitMs)));
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
      // At once: a proxy has to learn it before the listening ends, and the checks may take their time.
      if (draining) return { status: 503, body: { status: 'draining' } };
      const [ofDatabase, ofBlobs, ofQueue] = await Promise.all([database(), blobStore(), queue()]);
      // Without blobs or queue most calls are still served, and every other replica lacks them too: a proxy that took all
      // of them out would turn a part that fails into a service that is down.
      const ready = !ofDatabase;
      const degraded = ofBlobs !== null || ofQueue !== null;
      return {
        status: ready ? 200 : 503,
        body: {
          status: ready ? (degraded ? 'degraded' : 'ready') : 'not ready',
          database: ofDatabase ?? 'ok',
          blobs: ofBlobs ?? 'ok',
          queue: ofQueue ?? 'ok',
          jobs: dispatcher.state(),
          payloadStoreBytes: payloads.bytesHeld(),
        },
      };
    },
  };
}

/** Why a part is not well, without detail that a stranger could use; null when it is. */
async function faultOf(check: () => Promise<void>): Promise<string | null> {
  try {
    await check();
    return null;
  } catch {
    return 'unreachable';
  }
}

/** Asks once for all who ask at a time: a flood of probes takes no more of a part than one. */
function shared<T>(ask: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | null = null;
  return () => {
    asked ??= ask().finally(() => {
      asked = null;
    });
    return asked;
  };
}
