import type { FastifyInstance, FastifyRequest } from 'fastify';
import { isTracing, type Span, startSpan, withSpan } from '../../../shared/platform/tracing/tracing.ts';

const errorStatus = 2;
/** Of probes and files, no trace is of use. */
const untraced = /^\/(assets\/|healthz|readyz|metrics)/;

const spans = new WeakMap<FastifyRequest, Span>();

/** The span of a request, also after its end. */
export function spanOf(request: FastifyRequest): Span | undefined {
  return spans.get(request);
}

/**
 * Traces each request, below the span of its traceparent header if it has one. Neither the query nor any other header becomes part of it: both may contain
 * credentials.
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
    const { headers, id, method, routeOptions, url } = request;
    const route = routeOptions.url ?? 'none';
    const parent = headers['traceparent'];
    const span = startSpan(`${method} ${route}`, Array.isArray(parent) ? undefined : parent, {
      role: 'server',
      attributes: {
        'http.request.method': method,
        'http.route': route,
        'url.path': url.split('?')[0] as string,
        'holdfast.request_id': id,
      },
    });
    if (span === null) return done();
    spans.set(request, span);
    withSpan(span, done);
  });
  app.addHook('onRequestAbort', async (request) => end(request, null));
  app.addHook('onResponse', (request, reply, done) => {
    end(request, reply.statusCode);
    done();
  });
}
