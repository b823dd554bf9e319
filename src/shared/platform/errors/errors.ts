/** Its sentence is all that an operator needs: a setting, the machine or a part that the process needs is wrong. */
export abstract class OperatorError extends Error {}

/** What an error may carry besides its sentence. */
export interface AppErrorOptions extends ErrorOptions {
  /** Seconds after which a repeat may succeed; becomes `Retry-After`. */
  readonly retryAfterSeconds?: number;
}

/**
 * Root of the errors that have an answer. `status` is the HTTP status, `code` the stable name that crosses
 * the queue and the dashboard API, `message` a sentence for the caller.
 */
export abstract class AppError extends Error {
  abstract readonly status: number;
  abstract readonly code: string;
  readonly retryAfterSeconds: number | undefined;

  constructor(message: string, options: AppErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

export class InvalidRequestError extends AppError {
  override readonly name: string = 'InvalidRequestError';
  readonly status = 400;
  readonly code: string = 'invalid-request';
}

export class UnauthenticatedError extends AppError {
  override readonly name: string = 'UnauthenticatedError';
  readonly status = 401;
  readonly code: string = 'unauthenticated';
}

export class ForbiddenError extends AppError {
  override readonly name: string = 'ForbiddenError';
  readonly status = 403;
  readonly code: string = 'forbidden';
}

export class NotFoundError extends AppError {
  override readonly name: string = 'NotFoundError';
  readonly status = 404;
  readonly code: string = 'not-found';
}

export class ConflictError extends AppError {
  override readonly name: string = 'ConflictError';
  readonly status = 409;
  readonly code: string = 'conflict';
}

export class PayloadTooLargeError extends AppError {
  override readonly name: string = 'PayloadTooLargeError';
  readonly status = 413;
  readonly code: string = 'payload-too-large';
}

export class UnsupportedMediaTypeError extends AppError {
  override readonly name: string = 'UnsupportedMediaTypeError';
  readonly status = 415;
  readonly code: string = 'unsupported-media-type';
}

export class TooManyRequestsError extends AppError {
  override readonly name: string = 'TooManyRequestsError';
  readonly status = 429;
  readonly code: string = 'too-many-requests';
}

/** A fault of ours or of a part we need; a repeat of the same call is safe and may succeed. */
export class UnavailableError extends AppError {
  override readonly name: string = 'UnavailableError';
  readonly status = 503;
  readonly code: string = 'unavailable';
}

/** A fault of ours that a repeat does not mend: somebody has to look. */
export class FaultError extends AppError {
  override readonly name: string = 'FaultError';
  readonly status = 500;
  readonly code: string = 'fault';
}

/** The client took too long to send its request. Not 408: the CLI repeats a call after a 503 alone, and its network may be better then. */
export class SlowRequestError extends UnavailableError {
  override readonly name: string = 'SlowRequestError';
  override readonly code: string = 'slow-request';
}
