/** The SDK itself reads the endpoint, its headers and certificates, and the resource. */
export interface TracingConfig {
  readonly protocol: 'http/protobuf' | 'http/json';
  readonly sampler: 'always_on' | 'always_off' | 'traceidratio';
  /** The caller's decision applies to a request with a traceparent header. */
  readonly isParentBased: boolean;
  /** For `traceidratio`, from 0 to 1. */
  readonly ratio: number;
  /** Only the limits that are set: the SDK has defaults for the others. */
  readonly batches: {
    readonly scheduledDelayMillis?: number;
    readonly exportTimeoutMillis?: number;
    readonly maxQueueSize?: number;
    readonly maxExportBatchSize?: number;
  };
  /** A server starts nevertheless: the specification requires the default. */
  readonly warnings: readonly string[];
}

const batchVariables = {
  OTEL_BSP_SCHEDULE_DELAY: 'scheduledDelayMillis',
  OTEL_BSP_EXPORT_TIMEOUT: 'exportTimeoutMillis',
  OTEL_BSP_MAX_QUEUE_SIZE: 'maxQueueSize',
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: 'maxExportBatchSize',
} as const;

const samplers = ['always_on', 'always_off', 'traceidratio'] as const;

/** The variables are those of all OpenTelemetry SDKs. Null without an endpoint, or if tracing is turned off. */
export function readTracingConfig(environment: NodeJS.ProcessEnv = process.env): TracingConfig | null {
  const read = (...names: readonly string[]): string | undefined =>
    names.map((name) => environment[name]?.trim()).find((value) => value !== undefined && value !== '');
  if (read('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT') === undefined) return null;
  if (read('OTEL_SDK_DISABLED')?.toLowerCase() === 'true' || read('OTEL_TRACES_EXPORTER') === 'none') return null;
  const warnings: string[] = [];
  const protocol = read('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL') ?? 'http/protobuf';
  if (protocol !== 'http/protobuf' && protocol !== 'http/json')
    warnings.push(`OTEL_EXPORTER_OTLP_PROTOCOL: ${protocol} is not supported; using http/protobuf`);
  const name = read('OTEL_TRACES_SAMPLER') ?? 'parentbased_always_on';
  const sampler = samplers.find((each) => each === name.replace(/^parentbased_/, ''));
  if (sampler === undefined) warnings.push(`OTEL_TRACES_SAMPLER: unknown ${name}; using parentbased_always_on`);
  const ratio = Number(read('OTEL_TRACES_SAMPLER_ARG') ?? 1);
  const isRatio = ratio >= 0 && ratio <= 1;
  if (!isRatio && sampler === 'traceidratio') warnings.push('OTEL_TRACES_SAMPLER_ARG: not from 0 to 1; using 1');
  const batches: Partial<Record<(typeof batchVariables)[keyof typeof batchVariables], number>> = {};
  for (const [variable, limit] of Object.entries(batchVariables)) {
    const text = read(variable);
    if (text === undefined) continue;
    if (/^[1-9]\d{0,8}$/.test(text)) batches[limit] = Number(text);
    else warnings.push(`${variable}: not a positive integer; using the default`);
  }
  return {
    protocol: protocol === 'http/json' ? protocol : 'http/protobuf',
    sampler: sampler ?? 'always_on',
    isParentBased: sampler === undefined || name.startsWith('parentbased_'),
    ratio: isRatio ? ratio : 1,
    batches,
    warnings,
  };
}
