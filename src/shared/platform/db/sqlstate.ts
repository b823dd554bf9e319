import {
  BackendTerminatedError,
  DataIntegrityError,
  IntegrityConstraintViolationError,
  SchemaValidationError,
  SlonikError,
} from 'slonik';
import { AppError, InvalidRequestError, isFileError, UnavailableError } from '../errors/errors.ts';
import { tlsFaultOf } from '../tls/certificates.ts';

interface DatabaseFault {
  readonly code?: unknown;
  readonly constraint?: unknown;
  readonly cause?: unknown;
  readonly name?: unknown;
  readonly detail?: unknown;
  readonly where?: unknown;
}

export function violatedConstraint(error: unknown): string | null {
  for (const fault of faultChain(error)) {
    if (typeof fault.constraint === 'string' && fault.constraint !== '') return fault.constraint;
  }
  return null;
}

/** Null if the error did not come from Postgres. */
function sqlStateOf(error: unknown): string | null {
  for (const fault of faultChain(error)) {
    if (typeof fault.code === 'string' && /^[0-9A-Z]{5}$/.test(fault.code)) return fault.code;
  }
  return null;
}

/** Whether a standby has cancelled a statement in order to continue its replay. */
export function isRecoveryConflict(error: unknown): boolean {
  const state = sqlStateOf(error);
  if (state === '40001' || state === '40P01') return true;
  return says(error, /conflict with recovery/);
}

function says(error: unknown, pattern: RegExp): boolean {
  return [...faultChain(error)].some((fault) => pattern.test(String((fault as Error).message ?? '')));
}

export function isStatementTimeout(error: unknown): boolean {
  return sqlStateOf(error) === '57014';
}

/** The connection can still be used after these refused statements. */
const sparingClasses = new Set(['21', '22', '23', '40', '42', '44', '55', 'P0']);
const sparingErrors = [DataIntegrityError, IntegrityConstraintViolationError, SchemaValidationError];

/** The error came from the work itself, or from a statement that Postgres refused. */
export function sparesConnection(error: unknown): boolean {
  const state = sqlStateOf(error);
  if (state !== null) return sparingClasses.has(state.slice(0, 2)) || state === '57014';
  return !isLost(error) && [...faultChain(error)].every(isSparing);
}

function isSparing(fault: unknown): boolean {
  return !(fault instanceof SlonikError) || sparingErrors.some((kind) => fault instanceof kind);
}

export function isLockTimeout(error: unknown): boolean {
  return sqlStateOf(error) === '55P03';
}

/**
 * Whether the server hides, lacks or refuses a function, e.g. a managed server for functions about files and the log. Amazon Aurora
 * responds with 55000 while its `wal_level` is the default. A standby also does, but without this text.
 */
export function isHiddenFunction(error: unknown): boolean {
  const state = sqlStateOf(error) ?? '';
  return ['42501', '42883', '0A000'].includes(state) || (state === '55000' && says(error, /wal_level/));
}

const retryableClasses = new Set(['08', '40', '53', '55', '57', '58']);
/** The server became a standby, or a transaction was idle for too long. The next connection is a new one. */
const retryableStates = new Set(['25006', '25P03']);
const connectionErrors = new Set([
  'AcquireTimeoutError',
  'LoginRefusedError',
  'NoPrimaryError',
  'QueryDeadlineError',
  'StaleStatementError',
]);
const socketCodes = new Set([
  'EAI_AGAIN',
  'ECONNABORTED',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTDOWN',
  'EHOSTUNREACH',
  'ENETDOWN',
  'ENETUNREACH',
  'ENOENT',
  'ENOTFOUND',
  'EPIPE',
  'ETIMEDOUT',
]);

/**
 * Postgres reports character_not_in_repertoire for a NUL in text. In a parameter (but not in stored values), it rejects the JSON escape of
 * a NUL (untranslatable_character) or of half a surrogate pair. Translated messages are not recognized.
 */
function isUnstorableText(error: unknown): boolean {
  const state = sqlStateOf(error);
  if (state === '22021') return true;
  return [...faultChain(error)].some(
    ({ detail, where }) =>
      /^unnamed portal parameter /m.test(String(where)) &&
      (state === '22P05' || (state === '22P02' && /^Unicode .* surrogate must/.test(String(detail)))),
  );
}

/**
 * Transient errors (lost connection, deadlock, timeout, out of resources, shutdown) become UnavailableError, and those about text that
 * Postgres cannot store InvalidRequestError.
 */
export function mapDatabaseError(error: unknown): unknown {
  if (error instanceof AppError) return error;
  const state = sqlStateOf(error);
  if (isUnstorableText(error)) {
    return new InvalidRequestError('A text in the request contains a NUL or half a character, which cannot be stored', {
      cause: error,
    });
  }
  if (!isPassingState(state) && !isLost(error)) return error;
  return new UnavailableError(`${outageOf(error, state)}; please retry`, { cause: error, retryAfterSeconds: 1 });
}

/** A caller may look for the cause: a busy database differs from an unreachable one. */
function outageOf(error: unknown, state: string | null): string {
  if (isStatementTimeout(error) || isLockTimeout(error))
    return 'The database took too long, because it is busy or another call holds a lock';
  if (state?.startsWith('40')) return 'Other calls keep changing the same data';
  if (state?.startsWith('53')) return 'The database has no disk space, memory or connections left at the moment';
  const isBusy = [...faultChain(error)].some(({ name }) => name === 'AcquireTimeoutError');
  return isBusy ? 'Too many calls wait for the database' : 'The database is not available at the moment';
}

/** Whether the same statements may succeed later. False for an error that is already made for the caller. */
export function isOutage(error: unknown): boolean {
  return !(error instanceof AppError) && mapDatabaseError(error) instanceof UnavailableError;
}

/** Returns null if waiting does not help, e.g. for a wrong password, a missing database or an untrusted certificate. */
export function passingReason(error: unknown): string | null {
  const state = sqlStateOf(error);
  if (tlsFaultOf(error) !== null) return null;
  if (state === null ? !isLost(error) : !isPassingState(state)) return null;
  const { message, code } = (error ?? {}) as { message?: unknown; code?: unknown };
  return String(message || code || error);
}

/** PgBouncer refuses this parameter of our connections. */
export function refusedParameter(error: unknown): string | null {
  for (const fault of faultChain(error)) {
    const refused = /unsupported startup parameter: (\w+)/.exec(String((fault as Error).message ?? ''));
    if (refused) return refused[1] as string;
  }
  return null;
}

function isPassingState(state: string | null): boolean {
  return state !== null && (retryableStates.has(state) || retryableClasses.has(state.slice(0, 2)));
}

function isLost(error: unknown): boolean {
  return [...faultChain(error)].some(
    (fault) =>
      fault instanceof BackendTerminatedError ||
      connectionErrors.has(String(fault.name)) ||
      // ENOENT of a server's socket, not of a file.
      (socketCodes.has(String(fault.code)) && !isFileError(fault)) ||
      /Connection terminated/i.test(String((fault as Error).message ?? '')),
  );
}

function* faultChain(error: unknown): Generator<DatabaseFault> {
  let current = error;
  for (let depth = 0; depth < 8 && typeof current === 'object' && current !== null; depth++) {
    yield current as DatabaseFault;
    current = (current as DatabaseFault).cause;
  }
}
