import type { FastifyInstance } from 'fastify';
import type { Metrics } from '../../shared/platform/telemetry/metrics.ts';

/** Gives every answer its request id, and keeps time of it. */
export function registerRequestRecords(app: FastifyInstance, metrics: Metrics): void {
  app.addHook('onRequest', async (request, reply) => {
    void reply.header('x-pulumi-request-id', request.id);
  });
  app.addHook('onResponse', async (request, reply) => {
    const route = request.routeOptions.url ?? 'none';
    metrics.requestSeconds.labels(request.method, route, String(reply.statusCode)).observe(reply.elapsedTime / 1000);
    request.log.info(
      {
        method: request.method,
        route,
        path: request.url.split('?')[0],
        status: reply.statusCode,
        ms: Math.round(reply.elapsedTime),
      },
      'request',
    );
  });
}
