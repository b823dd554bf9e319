import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Metrics } from '../../shared/platform/telemetry/metrics.ts';

/** Status logged when the client disconnects before the response, as reverse proxies do. */
const clientClosedRequest = 499;

/** Adds the request id to every response; records the duration of each request and writes it to the access log. */
export function registerAccessLog(app: FastifyInstance, metrics: Metrics): void {
  const startTimes = new WeakMap<FastifyRequest, number>();
  /** Only the first event that ends a request is recorded. */
  const record = (request: FastifyRequest, status: number): void => {
    const start = startTimes.get(request);
    if (start === undefined) return;
    startTimes.delete(request);
    const ms = performance.now() - start;
    const route = request.routeOptions.url ?? 'none';
    metrics.requestSeconds.labels(request.method, route, String(status)).observe(ms / 1000);
    request.log.info(
      { method: request.method, route, path: request.url.split('?')[0], status, ms: Math.round(ms) },
      'request',
    );
  };
  app.addHook('onRequest', async (request, reply) => {
    startTimes.set(request, performance.now());
    void reply.header('x-pulumi-request-id', request.id);
  });
  app.addHook('onRequestAbort', async (request) => record(request, clientClosedRequest));
  app.addHook('onResponse', async (request, reply) => record(request, reply.statusCode));
}
