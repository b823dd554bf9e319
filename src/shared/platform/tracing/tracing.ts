import { AsyncLocalStorage } from 'node:async_hooks';
import type { Attributes, Span } from '@opentelemetry/api';

export type { Span };

/** The role of a span between two processes, as OpenTelemetry defines it. */
export type SpanRole = 'internal' | 'server' | 'client' | 'producer' | 'consumer';

interface SpanOptions {
  readonly role?: SpanRole;
  readonly attributes?: Attributes;
}

/** Starts spans. The only one of a process is created by `startTracing`. */
export interface Tracer {
  /** `parent`: a span of this process, or a traceparent header; null begins a trace. An invalid header begins one, too. */
  start(name: string, parent: Span | string | null, options: SpanOptions): Span;
}

const errorStatus = 2;

let tracer: Tracer | null = null;
const spans = new AsyncLocalStorage<Span>();

/** Null turns tracing off. */
export function setTracer(next: Tracer | null): void {
  tracer = next;
}

/** Whether this process traces at all. */
export function isTracing(): boolean {
  return tracer !== null;
}

/** The span of the current work; undefined if it has none. Its trace may not be sampled. */
export function currentSpan(): Span | undefined {
  return tracer === null ? undefined : spans.getStore();
}

/** The traceparent header (W3C Trace Context) that continues the current trace elsewhere. */
export function currentTraceparent(): string | undefined {
  const span = currentSpan();
  if (!span) return undefined;
  const { traceId, spanId, traceFlags } = span.spanContext();
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}

/** Starts the span of a request or a job; null if this process does not trace. The caller ends it. */
export function startSpan(name: string, traceparent: string | undefined, options: SpanOptions): Span | null {
  return tracer?.start(name, traceparent ?? null, options) ?? null;
}

/** Runs `work` so that its spans and log lines belong to `span`. */
export function withSpan<T>(span: Span, work: () => T): T {
  return spans.run(span, work);
}

/** Runs `work` in a span below the current one. Without a sampled current one, only runs it. */
export function inSpan<T>(name: string, options: SpanOptions, work: () => Promise<T>): Promise<T> {
  const parent = tracer && spans.getStore();
  if (!tracer || !parent?.isRecording()) return work();
  return endAfter(tracer.start(name, parent, options), work);
}

/** Runs a job in a span that continues the trace of its request. A job without a request is not traced. */
export function inJobSpan<T>(name: string, traceparent: string | undefined, work: () => Promise<T>): Promise<T> {
  if (!tracer || traceparent === undefined) return work();
  return endAfter(tracer.start(name, traceparent, { role: 'consumer' }), work);
}

/** Runs work that no request asked for in a span that begins a trace. */
export function inRootSpan<T>(name: string, options: SpanOptions, work: () => Promise<T>): Promise<T> {
  return tracer ? endAfter(tracer.start(name, null, options), work) : work();
}

/** The same for long work: its statements, which may be millions, are not traced. */
export function inLoneSpan<T>(name: string, work: () => Promise<T>): Promise<T> {
  return inRootSpan(name, {}, () => spans.exit(work));
}

/** Marks the span as failed. The message of an error may quote a body, so only its kind is recorded. */
export function failSpan(span: Span, error: unknown): void {
  const code = (error as { code?: unknown } | null)?.code;
  const type = error instanceof Error ? error.name : 'unknown';
  span.setAttribute('error.type', typeof code === 'string' ? `${type} (${code})` : type);
  span.setStatus({ code: errorStatus });
}

async function endAfter<T>(span: Span, work: () => Promise<T>): Promise<T> {
  try {
    return await spans.run(span, work);
  } catch (error) {
    failSpan(span, error);
    throw error;
  } finally {
    span.end();
  }
}
