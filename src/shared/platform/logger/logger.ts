import { type LogFn, type Logger as PinoLogger, pino } from 'pino';
import { currentTrace } from '../tracing/tracing.ts';
import { currentRequest } from './request-lines.ts';

export type Logger = PinoLogger;

const debugLevel = pino.levels.values['debug'] as number;

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

/** These loggers, and their children, write a request id themselves. */
const ofRequest = Symbol('of a request');

/** Also for lines outside the work of the request, e.g. about its connection. */
export function childOfRequest(logger: Logger, reqId: string): Logger {
  return Object.assign(logger.child({ reqId }), { [ofRequest]: true });
}

/** Most verbose first. */
export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;

/** Other loggers keep the level of their creation. */
const loggersOfParts = new WeakMap<Logger, Logger[]>();

/** The part lives as long as the process. */
export function childOfProcess(logger: Logger, bindings: Readonly<Record<string, unknown>>): Logger {
  const child = logger.child(bindings);
  loggersOfParts.set(logger, [...(loggersOfParts.get(logger) ?? []), child]);
  return child;
}

/** Also changes the loggers of parts. */
export function setLogLevel(logger: Logger, level: string): void {
  for (const each of [logger, ...(loggersOfParts.get(logger) ?? [])]) each.level = level;
}

/** Writes JSON lines to stdout (or `destination`), with secrets redacted. */
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
      const trace = currentTrace();
      if (!trace) return reqId === undefined ? {} : { reqId };
      const ids = { trace_id: trace.traceId, span_id: trace.spanId };
      return reqId === undefined ? ids : { reqId, ...ids };
    },
    hooks: {
      // The compression of responses reports every client that leaves early as an error.
      logMethod(this: PinoLogger, args: Parameters<LogFn>, method: LogFn, level: number) {
        if (level > debugLevel && isEarlyClose(args[0])) this.debug(...args);
        else method.apply(this, args);
      },
    },
  };
  const logger = destination ? pino(settings, destination) : pino(settings);
  redactOnlyObjects(logger);
  return logger;
}

/**
 * With paths that begin with `*`, pino redacts each value of a line and clones even values without properties. This caused a sixth of the
 * memory allocation of a small request.
 */
function redactOnlyObjects(logger: PinoLogger): void {
  const { stringifiersSym, wildcardFirstSym } = pino.symbols;
  type Stringify = (value: unknown) => string;
  // Symbols of pino 10. A test detects if they are gone.
  const stringifiers = (logger as unknown as Record<symbol, Record<symbol, Stringify>>)[stringifiersSym];
  const redact = stringifiers?.[wildcardFirstSym];
  if (!stringifiers || !redact) return;
  stringifiers[wildcardFirstSym] = (value) => (isFlat(value) ? JSON.stringify(value) : redact(value));
}

function isFlat(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

function isEarlyClose(logged: unknown): boolean {
  return logged instanceof Error && logged.message === 'premature close';
}

/** Properties of an error may contain query values. */
function serializeError(error: unknown): unknown {
  if (!(error instanceof Error)) return String(error);
  return {
    type: error.name,
    message: error.message,
    stack: error.stack,
    ...(error.cause === undefined ? {} : { cause: serializeError(error.cause) }),
  };
}
