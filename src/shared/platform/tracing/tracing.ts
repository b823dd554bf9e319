import { AsyncLocalStorage } from 'node:async_hooks';
import type { Attributes, Span } from '@opentelemetry/api';

export type { Span };

/** As OpenTelemetry defines it. */
type SpanRole = 'internal' | 'server' | 'client' | 'producer' | 'consumer';

export interface SpanOptions {
  readonly role?: SpanRole;
  readonly attributes?: Attributes;
}

export interface FirstSpan extends SpanOptions {
  readonly name: string;
}

export interface TraceContext {
  readonly traceId: string;
  readonly spanId: string;
  /** Null if the trace is not sampled. Its ids are then only for logs and for other processes. */
  readonly span: Span | null;
}

/** `startTracing` creates the only tracer of a process. */
export interface Tracer {
  /**
   * Without a valid traceparent header, begins a new trace. Only for sampled traces, which are few, `describe` is called and a span is
   * started.
   */
  begin(traceparent: string | undefined, describe: () => FirstSpan): TraceContext;
  start(name: string, parent: Span, options: SpanOptions): TraceContext;
}

const errorStatus = 2;

let tracer: Tracer | null = null;
const contexts = new AsyncLocalStorage<TraceContext>();

/** Null turns tracing off. */
export function setTracer(next: Tracer | null): void {
  tracer = next;
}

export function isTracing(): boolean {
  return tracer !== null;
}

/** The trace may not be sampled. Undefined if the current work has none. */
export function currentTrace(): TraceContext | undefined {
  return tracer === null ? undefined : contexts.getStore();
}

/** Null if there is no span, if it has ended, or if its trace is not sampled. */
export function currentSpan(): Span | null {
  const span = currentTrace()?.span;
  return span?.isRecording() ? span : null;
}

/** Continues the current trace in another process (W3C Trace Context). */
export function currentTraceparent(): string | undefined {
  const context = currentTrace();
  if (!context) return undefined;
  return `00-${context.traceId}-${context.spanId}-${context.span ? '01' : '00'}`;
}

/** Null if this process does not trace. The caller ends the span. */
export function beginTrace(traceparent: string | undefined, describe: () => FirstSpan): TraceContext | null {
  return tracer?.begin(traceparent, describe) ?? null;
}

/** The spans and log lines of `work` belong to `context`. */
export function inTrace<T>(context: TraceContext, work: () => T): T {
  return contexts.run(context, work);
}

/** Without a sampled current span, only runs `work`. */
export function inSpan<T>(name: string, options: SpanOptions, work: () => Promise<T>): Promise<T> {
  const parent = currentSpan();
  if (!tracer || parent === null) return work();
  return endAfter(tracer.start(name, parent, options), work);
}

/** A job without a request is not traced. */
export function inJobSpan<T>(name: string, traceparent: string | undefined, work: () => Promise<T>): Promise<T> {
  if (!tracer || traceparent === undefined) return work();
  return endAfter(
    tracer.begin(traceparent, () => ({ name, role: 'consumer' })),
    work,
  );
}

/** For work that no request has caused. */
export function inRootSpan<T>(name: string, options: SpanOptions, work: () => Promise<T>): Promise<T> {
  if (!tracer) return work();
  return endAfter(
    tracer.begin(undefined, () => ({ ...options, name })),
    work,
  );
}

/** Its statements are not traced, because there may be millions. */
export function inLoneSpan<T>(name: string, work: () => Promise<T>): Promise<T> {
  return inRootSpan(name, {}, () => contexts.exit(work));
}

/** The message of an error may quote a body. */
export function failSpan(span: Span, error: unknown): void {
  const code = (error as { code?: unknown } | null)?.code;
  const type = error instanceof Error ? error.name : 'unknown';
  span.setAttribute('error.type', typeof code === 'string' ? `${type} (${code})` : type);
  span.setStatus({ code: errorStatus });
}

async function endAfter<T>(context: TraceContext, work: () => Promise<T>): Promise<T> {
  const { span } = context;
  if (span === null) return contexts.run(context, work);
  try {
    return await contexts.run(context, work);
  } catch (error) {
    failSpan(span, error);
    throw error;
  } finally {
    span.end();
  }
}
