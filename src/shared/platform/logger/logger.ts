import { type LogFn, type Logger as PinoLogger, pino } from 'pino';
import { currentSpan } from '../tracing/tracing.ts';
import { currentRequest } from './request-lines.ts';

export type Logger = PinoLogger;

const debugLevel = pino.levels.values['debug'] as number;

/** Properties that must never be logged. */
const secretPaths = [
  'req.headers.authorization',
  'headers.authorization',
  '*.authorization',
  '*.token',
  '*.accessToken',
  '*.plaintext',
  '*.ciphertext',
  '*.masterKeys',
  '*.vaultToken',
  '*.auditToken',
  '*.password',
  '*.secretAccessKey',
  'config.secrets',
];

/** Loggers that write a request id themselves, and those derived from them. */
const ofRequest = Symbol('of a request');

/** A logger for the lines of one request, also outside its work: for events of its connection. */
export function childOfRequest(logger: Logger, reqId: string): Logger {
  return Object.assign(logger.child({ reqId }), { [ofRequest]: true });
}

/** Creates the process's logger: JSON lines on stdout (or `destination`), with secrets redacted. */
export function createLogger(
  options: { level: string; name?: string },
  destination?: { write(line: string): void },
): Logger {
  const settings = {
    level: options.level,
    base: { name: options.name ?? 'holdfast', pid: process.pid },
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: secretPaths, censor: '[redacted]' },
    serializers: { err: serializeError, error: serializeError },
    mixin: (_fields: object, _level: number, logger: PinoLogger) => {
      const reqId = ofRequest in logger ? undefined : currentRequest();
      const span = currentSpan()?.spanContext();
      const trace = span && { trace_id: span.traceId, span_id: span.spanId };
      return reqId === undefined ? { ...trace } : { reqId, ...trace };
    },
    hooks: {
      // The compression of responses reports every client that leaves before the end as an error.
      logMethod(this: PinoLogger, args: Parameters<LogFn>, method: LogFn, level: number) {
        if (level > debugLevel && isEarlyClose(args[0])) this.debug(...args);
        else method.apply(this, args);
      },
    },
  };
  return destination ? pino(settings, destination) : pino(settings);
}

function isEarlyClose(logged: unknown): boolean {
  return logged instanceof Error && logged.message === 'premature close';
}

/** Logs name, message and stack of an error and its causes, but not its own properties, which may contain query values. */
function serializeError(error: unknown): unknown {
  if (!(error instanceof Error)) return String(error);
  return {
    type: error.name,
    message: error.message,
    stack: error.stack,
    ...(error.cause === undefined ? {} : { cause: serializeError(error.cause) }),
  };
}
