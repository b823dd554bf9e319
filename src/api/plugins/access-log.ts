import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Metrics } from '../../shared/platform/telemetry/metrics.ts';

/** Status in the records of requests whose client left before the answer, as reverse proxies write it. */
const clientLeft = 499;

/** Gives every answer its request id, and keeps a record of each request: its time, and a line in the log. */
export function registerAccessLog(app: FastifyInstance, metrics: Metrics): void {
  const began = new WeakMap<FastifyRequest, number>();
  /** Of what ends a request, the first counts. */
  const record = (request: FastifyRequest, status: number): void => {
    const start = began.get(request);
    if (start === undefined) return;
    began.delete(request);
    const ms = performance.now() - start;
    const route = request.routeOptions.url ?? 'none';
    metrics.requestSeconds.labels(request.method, route, String(status)).observe(ms / 1000);
    request.log.info(
      { method: request.method, route, path: request.url.split('?')[0], status, ms: Math.round(ms) },
      'request',
    );
  };
  app.addHook('onRequest', async (request, reply) => {
    began.set(request, performance.now());
    void reply.header('x-pulumi-request-id', request.id);
  });
  app.addHook('onRequestAbort', async (request) => record(request, clientLeft));
  app.addHook('onResponse', async (request, reply) => record(request, reply.statusCode));
}
