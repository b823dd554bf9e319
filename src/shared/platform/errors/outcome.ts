import { Type } from 'typebox';
import {
  AppError,
  ConflictError,
  ForbiddenError,
  InvalidRequestError,
  NotFoundError,
  PayloadTooLargeError,
  TooManyRequestsError,
  UnavailableError,
} from './errors.ts';

/** A refusal as data: classes do not survive a queue. */
export const Rejection = Type.Object({
  code: Type.String(),
  status: Type.Integer(),
  message: Type.String(),
});
export type Rejection = Type.Static<typeof Rejection>;

/** The error as data that can cross a process border; null for faults that are worth a retry. */
export function toRejection(error: unknown): Rejection | null {
  if (!(error instanceof AppError) || error.status >= 500 || error.status === 429) return null;
  return { code: error.code, status: error.status, message: error.message };
}

/** The typed error that a rejection stands for. */
export function fromRejection(rejection: Rejection): AppError {
  const { message } = rejection;
  switch (rejection.status) {
    case 400:
      return new InvalidRequestError(message);
    case 403:
      return new ForbiddenError(message);
    case 404:
      return new NotFoundError(message);
    case 409:
      return new ConflictError(message);
    case 413:
      return new PayloadTooLargeError(message);
    case 429:
      return new TooManyRequestsError(message);
    default:
      return new UnavailableError(message);
  }
}
