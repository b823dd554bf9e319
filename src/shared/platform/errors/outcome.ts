import { Type } from 'typebox';
import {
  AppError,
  ConflictError,
  FaultError,
  ForbiddenError,
  InvalidRequestError,
  NotFoundError,
  PayloadTooLargeError,
  TooManyRequestsError,
  UnauthenticatedError,
  UnavailableError,
  UnsupportedMediaTypeError,
} from './errors.ts';

/** Error classes do not survive a queue. */
const Rejection = Type.Object({
  code: Type.String(),
  status: Type.Integer(),
  message: Type.String(),
});
type Rejection = Type.Static<typeof Rejection>;

/** Other faults are thrown and retried. */
export const Outcome = Type.Union([
  Type.Object({ result: Type.Literal('committed') }),
  Type.Object({ result: Type.Literal('rejected'), rejection: Rejection }),
]);
export type Outcome = Type.Static<typeof Outcome>;

/** The job has begun and may still be committed. */
export class JobPendingError extends UnavailableError {
  override readonly name = 'JobPendingError';
  override readonly code = 'job-pending';
  constructor() {
    super('The write is taking longer than this call may wait; please repeat it', { retryAfterSeconds: 5 });
  }
}

/** No worker has taken the job, and none will. */
export class JobWithdrawnError extends UnavailableError {
  override readonly name = 'JobWithdrawnError';
  override readonly code = 'job-withdrawn';
  constructor() {
    super('No worker was free in time, and nothing was changed; please repeat the call', { retryAfterSeconds: 5 });
  }
}

/** Null for faults that are worth a retry. */
export function toRejection(error: unknown): Rejection | null {
  if (!(error instanceof AppError) || error.status > 500 || error.status === 429) return null;
  return { code: error.code, status: error.status, message: error.message };
}

export function fromRejection({ code, message, status }: Rejection): AppError {
  return Object.assign(new (errorTypes[status] ?? UnavailableError)(message), { code });
}

const errorTypes: Readonly<Record<number, new (message: string) => AppError>> = {
  400: InvalidRequestError,
  401: UnauthenticatedError,
  403: ForbiddenError,
  404: NotFoundError,
  409: ConflictError,
  413: PayloadTooLargeError,
  415: UnsupportedMediaTypeError,
  429: TooManyRequestsError,
  500: FaultError,
};
