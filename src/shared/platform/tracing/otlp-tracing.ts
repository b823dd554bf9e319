import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import {
  DiagLogLevel,
  diag,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOnSampler,
  BatchSpanProcessor,
  RandomIdGenerator,
  SamplingDecision,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { holdfastVersion } from '../config/config.ts';
import type { TracingConfig } from '../config/open-telemetry.ts';
import { LimitedWarning } from '../logger/limited-warning.ts';
import type { Logger } from '../logger/logger.ts';
import { copyOf } from '../text/cut-text.ts';
import type { SpanOptions, TraceContext, Tracer } from './tracing.ts';

const kinds: Readonly<Record<NonNullable<SpanOptions['role']>, SpanKind>> = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
};

/**
 * Sends spans by OTLP over HTTP, in batches. Drops spans that do not fit into the queue. The SDK reads the endpoint, its headers and
 * certificates, and the resource from OpenTelemetry's variables.
 */
export function createTracing(
  role: string,
  config: TracingConfig,
  logger: Logger,
): { readonly tracer: Tracer; close(): Promise<void> } {
  for (const warning of config.warnings) logger.warn(`tracing: ${warning}`);
  logFaults(logger);
  const exporter = config.protocol === 'http/json' ? new JsonExporter() : new ProtobufExporter();
  return createTracer(role, config, exporter);
}

export function createTracer(
  role: string,
  config: TracingConfig,
  exporter: SpanExporter,
): { readonly tracer: Tracer; close(): Promise<void> } {
  const service = resourceFromAttributes({
    'service.name': role === 'server' ? 'holdfast' : `holdfast-${role}`,
    'service.version': holdfastVersion,
    'service.instance.id': randomUUID(),
    'host.name': hostname(),
    'process.pid': process.pid,
  });
  const ids = new RandomIdGenerator();
  const isSampled = samplerOf(config);
  let newTraceId = '';
  const provider = new TracerProvider({
    // The last resource wins, i.e. the operator's.
    resource: defaultResource()
      .merge(service)
      .merge(detectResources({ detectors: [envDetector] })),
    // Only sampled spans reach the SDK.
    sampler: new AlwaysOnSampler(),
    idGenerator: { generateTraceId: () => newTraceId, generateSpanId: ids.generateSpanId },
    spanProcessors: [new BatchSpanProcessor({ exporter, ...config.batches })],
  });
  const sdkTracer = provider.getTracer('holdfast', holdfastVersion);
  const tracer: Tracer = {
    begin: (traceparent, describe) => {
      const parent = traceparent === undefined ? null : parse(traceparent);
      const traceId = parent?.traceId ?? ids.generateTraceId();
      if (!isSampled(traceId, parent)) return { traceId, spanId: ids.generateSpanId(), span: null };
      newTraceId = traceId;
      const { attributes = {}, name, role: kind = 'internal' } = describe();
      const above = parent ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT;
      return contextOf(sdkTracer.startSpan(name, { kind: kinds[kind], attributes }, above));
    },
    start: (name, parent, { attributes = {}, role: kind = 'internal' }) =>
      contextOf(sdkTracer.startSpan(name, { kind: kinds[kind], attributes }, trace.setSpan(ROOT_CONTEXT, parent))),
  };
  return { tracer, close: () => provider.shutdown() };
}

function contextOf(span: Span): TraceContext {
  const { spanId, traceId } = span.spanContext();
  return { traceId, spanId, span };
}

function parse(traceparent: string): SpanContext | null {
  const [, version, traceId = '', spanId = '', flags = '', more] =
    /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/.exec(traceparent.trim()) ?? [];
  // Later versions may append fields.
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return null;
  const remote = {
    traceId: copyOf(traceId),
    spanId: copyOf(spanId),
    traceFlags: Number.parseInt(flags, 16) & 1,
    isRemote: true,
  };
  return isSpanContextValid(remote) ? remote : null;
}

/** Decides before a span exists: the SDK would need the attributes of each request. */
function samplerOf({ isParentBased, ratio, sampler }: TracingConfig) {
  const shares = { always_on: 1, always_off: 0, traceidratio: ratio };
  const root = new TraceIdRatioBasedSampler(shares[sampler]);
  return (traceId: string, parent: SpanContext | null): boolean =>
    isParentBased && parent
      ? parent.traceFlags === 1
      : root.shouldSample(ROOT_CONTEXT, traceId).decision === SamplingDecision.RECORD_AND_SAMPLED;
}

/** The SDK's messages about failed exports may quote headers, which may contain keys. */
function logFaults(logger: Logger): void {
  const warning = new LimitedWarning(logger);
  // A batch belongs to no request.
  const warn = AsyncLocalStorage.bind((): void =>
    warning.warn('tracing', {}, 'tracing: spans could not be sent to the OTLP endpoint'),
  );
  const ignore = (): void => {};
  diag.setLogger(
    { error: warn, warn: ignore, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.ERROR, suppressOverrideMessage: true },
  );
}
