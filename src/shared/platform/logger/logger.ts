import { type LogFn, type Logger as PinoLogger, pino } from 'pino';
import { currentTrace } from '../tracing/tracing.ts';
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

/** Levels of the log, most lines first. */
export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;

/** Loggers of parts that live as long as the process; others take the level that is set when they are made. */
const loggersOfParts = new WeakMap<Logger, Logger[]>();

/** A logger for a part that lives as long as the process. */
export function childOfProcess(logger: Logger, bindings: Readonly<Record<string, unknown>>): Logger {
  const child = logger.child(bindings);
  loggersOfParts.set(logger, [...(loggersOfParts.get(logger) ?? []), child]);
  return child;
}

/** Changes the level of the process's logger and of the loggers of its parts. */
export function setLogLevel(logger: Logger, level: string): void {
  for (const each of [logger, ...(loggersOfParts.get(logger) ?? [])]) each.level = level;
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
      const trace = currentTrace();
      if (!trace) return reqId === undefined ? {} : { reqId };
      const ids = { trace_id: trace.traceId, span_id: trace.spanId };
      return reqId === undefined ? ids : { reqId, ...ids };
    },
    hooks: {
      // The compression of responses reports every client that leaves before the end as an error.
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
 * The paths that begin with `*` make pino redact each value of a line, and the redaction clones even what has no properties: a sixth of the memory
 * that a small request allocated.
 */
function redactOnlyObjects(logger: PinoLogger): void {
  const { stringifiersSym, wildcardFirstSym } = pino.symbols;
  type Stringify = (value: unknown) => string;
  // Of pino 10; a test notices if they are gone.
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
