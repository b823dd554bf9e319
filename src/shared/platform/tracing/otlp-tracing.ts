import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { DiagLogLevel, diag, isSpanContextValid, ROOT_CONTEXT, type Span, SpanKind, trace } from '@opentelemetry/api';
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { holdfastVersion } from '../config/config.ts';
import type { TracingConfig } from '../config/open-telemetry.ts';
import { LimitedWarning } from '../logger/limited-warning.ts';
import type { Logger } from '../logger/logger.ts';
import type { SpanRole, Tracer } from './tracing.ts';

const kinds: Readonly<Record<SpanRole, SpanKind>> = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
};

/**
 * Sends spans by OTLP over HTTP, in batches; what does not fit into the queue of a batch is dropped. The SDK
 * reads the endpoint, its headers and certificates, and the resource from the variables that OpenTelemetry defines.
 */
export function createTracing(
  role: string,
  config: TracingConfig,
  logger: Logger,
): { readonly tracer: Tracer; close(): Promise<void> } {
  for (const warning of config.warnings) logger.warn(`tracing: ${warning}`);
  logFaults(logger);
  const exporter = config.protocol === 'http/json' ? new JsonExporter() : new ProtobufExporter();
  const service = resourceFromAttributes({
    'service.name': role === 'server' ? 'holdfast' : `holdfast-${role}`,
    'service.version': holdfastVersion,
    'service.instance.id': randomUUID(),
    'host.name': hostname(),
    'process.pid': process.pid,
  });
  const provider = new TracerProvider({
    // The last one wins: what the operator sets.
    resource: defaultResource()
      .merge(service)
      .merge(detectResources({ detectors: [envDetector] })),
    sampler: samplerOf(config),
    spanProcessors: [new BatchSpanProcessor({ exporter })],
  });
  const tracer = provider.getTracer('holdfast', holdfastVersion);
  return {
    tracer: {
      start: (name, parent, { attributes = {}, role: kind = 'internal' }) =>
        tracer.startSpan(name, { kind: kinds[kind], attributes }, contextOf(parent)),
    },
    close: () => provider.shutdown(),
  };
}

function contextOf(parent: Span | string | null) {
  if (parent === null) return ROOT_CONTEXT;
  if (typeof parent !== 'string') return trace.setSpan(ROOT_CONTEXT, parent);
  const [, version, traceId = '', spanId = '', flags = '', more] =
    /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/.exec(parent.trim()) ?? [];
  // Later versions may append fields.
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return ROOT_CONTEXT;
  const remote = { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true };
  return isSpanContextValid(remote) ? trace.setSpanContext(ROOT_CONTEXT, remote) : ROOT_CONTEXT;
}

function samplerOf({ isParentBased, ratio, sampler }: TracingConfig): Sampler {
  const samplers = {
    always_on: () => new AlwaysOnSampler(),
    always_off: () => new AlwaysOffSampler(),
    traceidratio: () => new TraceIdRatioBasedSampler(ratio),
  };
  const root = samplers[sampler]();
  return isParentBased ? new ParentBasedSampler({ root }) : root;
}

/** The SDK reports failed exports. Its messages may quote headers, which may contain keys. */
function logFaults(logger: Logger): void {
  const warning = new LimitedWarning(logger);
  const warn = (): void => warning.warn('tracing', {}, 'tracing: spans could not be sent to the OTLP endpoint');
  const ignore = (): void => {};
  diag.setLogger(
    { error: warn, warn: ignore, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.ERROR, suppressOverrideMessage: true },
  );
}
