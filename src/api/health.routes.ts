import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import type { ApiContext } from './api-context.ts';

/** Below the 3 s that a container's health check waits. */
const healthLimitMs = 2_000;

const Status = Type.Object({ status: Type.String() }, { additionalProperties: true });

/** Probes and metrics, outside the protocol: no Accept version, no token. */
export function registerHealthRoutes(app: FastifyInstance, context: ApiContext): void {
  const { config, db, blobs, dispatcher, handover, lifecycle, metrics } = context;
  let draining = false;
  lifecycle.onClose('drain', 'readiness', async () => {
    draining = true;
    await sleep(config.drainMs);
  });

  app.get(
    '/healthz',
    {
      logLevel: 'warn',
      config: { described: { answers: { 200: Status, 503: Status } } },
      schema: { summary: 'Whether the server and its database are healthy', tags: ['health'] },
    },
    async (_request, reply) => {
      const fault = await faultOf(() => db.ping(healthLimitMs));
      return reply
        .code(fault ? 503 : 200)
        .send(fault ? { status: 'unhealthy', database: fault } : { status: 'healthy' });
    },
  );

  app.get(
    '/readyz',
    {
      logLevel: 'warn',
      config: { described: { answers: { 200: Status, 503: Status } } },
      schema: { summary: 'Whether the server should be sent requests', tags: ['health'] },
    },
    async (_request, reply) => {
      // At once: a proxy has to learn it before the listening ends, and the checks may take their time.
      if (draining) return reply.code(503).send({ status: 'draining' });
      const [database, blobStore, queue] = await Promise.all([
        faultOf(() => db.ping(healthLimitMs)),
        faultOf(() => blobs.check(healthLimitMs)),
        faultOf(() => handover.check(healthLimitMs)),
      ]);
      // Without blobs or queue most calls are still served, and every other replica lacks them too: a proxy that took all
      // of them out would turn a part that fails into a service that is down.
      const ready = !database;
      const degraded = blobStore !== null || queue !== null;
      return reply.code(ready ? 200 : 503).send({
        status: ready ? (degraded ? 'degraded' : 'ready') : 'not ready',
        database: database ?? 'ok',
        blobs: blobStore ?? 'ok',
        queue: queue ?? 'ok',
        jobs: dispatcher.state(),
        handoverBytes: handover.bytesHeld(),
      });
    },
  );

  app.get(
    '/metrics',
    {
      logLevel: 'warn',
      config: { described: { answers: { 200: Type.String() }, produces: ['text/plain'] } },
      schema: { summary: 'Metrics for Prometheus', tags: ['health'] },
    },
    async (_request, reply) => reply.type(metrics.registry.contentType).send(await metrics.registry.metrics()),
  );
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
