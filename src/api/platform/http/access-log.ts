import type { FastifyInstance, FastifyRequest } from 'fastify';
import { forRequest } from '../../../shared/platform/logger/request-lines.ts';
import { type Metrics, observeTraced } from '../../../shared/platform/telemetry/metrics.ts';
import { spanOf } from './request-span.ts';

/** Status logged when the client disconnects before the response, as reverse proxies do. */
const clientClosedRequest = 499;

/** Adds the request id to every response, measures each request, and writes the access log. */
export function registerAccessLog(app: FastifyInstance, metrics: Metrics): void {
  const startTimes = new WeakMap<FastifyRequest, number>();
  // Routes, methods and statuses are few; looking up labels costs more than counting.
  const observers = new Map<string, (seconds: number) => void>();
  const observerOf = (method: string, route: string, status: string): ((seconds: number) => void) => {
    const key = `${status} ${method} ${route}`;
    const observer = observers.get(key) ?? metrics.requestSeconds.labels(method, route, status).observe;
    observers.set(key, observer);
    return observer;
  };
  /** Only the first event that ends a request is recorded. */
  const record = (request: FastifyRequest, status: number): void => {
    const start = startTimes.get(request);
    if (start === undefined) return;
    startTimes.delete(request);
    const ms = performance.now() - start;
    const route = request.routeOptions.url ?? 'none';
    const span = spanOf(request);
    if (span) {
      const labels = { method: request.method, route, status: String(status) };
      observeTraced(metrics.requestSeconds, labels, { seconds: ms / 1000, span });
    } else observerOf(request.method, route, String(status))(ms / 1000);
    request.log.info(
      { method: request.method, route, path: request.url.split('?')[0], status, ms: Math.round(ms) },
      'request',
    );
  };
  app.addHook('onRequest', (request, reply, done) => {
    startTimes.set(request, performance.now());
    void reply.header('x-pulumi-request-id', request.id);
    forRequest(request.id, done);
  });
  app.addHook('onRequestAbort', async (request) => record(request, clientClosedRequest));
  app.addHook('onResponse', (request, reply, done) => {
    record(request, reply.statusCode);
    done();
  });
}
