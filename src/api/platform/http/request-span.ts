import type { FastifyInstance, FastifyRequest } from 'fastify';
import { beginTrace, inTrace, isTracing, type Span } from '../../../shared/platform/tracing/tracing.ts';

const errorStatus = 2;
/** Traces of probes and files are of no use. */
const untraced = /^\/(assets\/|healthz|readyz|metrics)/;

const spans = new WeakMap<FastifyRequest, Span>();

/** The span exists after its end, too; null if its trace is not sampled. */
export function spanOf(request: FastifyRequest): Span | null {
  return spans.get(request) ?? null;
}

/**
 * Traces requests below the span of their traceparent header, if there is one. The trace contains neither the query nor any other header,
 * because both may contain credentials.
 */
export function registerRequestSpans(app: FastifyInstance): void {
  if (!isTracing()) return;
  const end = (request: FastifyRequest, status: number | null): void => {
    const span = spans.get(request);
    // Only the first event that ends a request counts.
    if (!span?.isRecording()) return;
    if (status !== null) span.setAttribute('http.response.status_code', status);
    if (status === null || status >= 500) span.setStatus({ code: errorStatus });
    if (status === null) span.setAttribute('error.type', 'client closed request');
    span.end();
  };
  app.addHook('onRequest', (request, _reply, done) => {
    if (untraced.test(request.url)) return done();
    const parent = request.headers['traceparent'];
    const context = beginTrace(Array.isArray(parent) ? undefined : parent, () => {
      const { id, method, routeOptions, url } = request;
      const route = routeOptions.url ?? 'none';
      const attributes = {
        'http.request.method': method,
        'http.route': route,
        'url.path': url.split('?')[0] as string,
        'holdfast.request_id': id,
      };
      return { name: `${method} ${route}`, role: 'server', attributes };
    });
    if (context === null) return done();
    if (context.span) spans.set(request, context.span);
    inTrace(context, done);
  });
  app.addHook('onRequestAbort', async (request) => end(request, null));
  app.addHook('onResponse', (request, reply, done) => {
    end(request, reply.statusCode);
    done();
  });
}
