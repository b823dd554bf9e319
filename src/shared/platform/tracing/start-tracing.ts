import type { TracingConfig } from '../config/open-telemetry.ts';
import type { Logger } from '../logger/logger.ts';
import { setTracer } from './tracing.ts';

/** Closing it sends the remaining spans. */
export interface Tracing {
  close(): Promise<void>;
}

/** Loads the SDK only with a configuration. `role` becomes part of the service's name. */
export async function startTracing(
  role: 'server' | 'api' | 'worker',
  config: TracingConfig | null,
  logger: Logger,
): Promise<Tracing | null> {
  if (config === null) return null;
  const { createTracing } = await import('./otlp-tracing.ts');
  const { close, tracer } = createTracing(role, config, logger);
  setTracer(tracer);
  return { close };
}
