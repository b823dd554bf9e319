import { UnrecoverableError } from 'bullmq';
import { AppError } from '../../shared/platform/errors/errors.ts';
import { PayloadMissingError, PayloadTamperedError } from '../../shared/platform/payloads/payload-store.ts';

/** BullMQ stores the message in Redis. */
export class RefusedError extends UnrecoverableError {
  constructor(message: string) {
    super(message);
    this.stack = message;
  }
}

/**
 * BullMQ may store the result in Redis: only the error's kind, because the message may quote a body. Only the client has a body that is
 * missing or was changed, so these jobs are not retried.
 */
export function redacted(error: unknown): Error {
  const code = error instanceof AppError ? error.code : (error as { code?: unknown } | null)?.code;
  const name = error instanceof Error ? error.name : 'unknown error';
  const text = `${name}${code === undefined ? '' : ` (${String(code)})`}; see the worker's log`;
  const isLost = error instanceof PayloadMissingError || error instanceof PayloadTamperedError;
  const result = isLost ? new UnrecoverableError(text) : new Error(text);
  result.stack = text;
  return result;
}
