import { UnavailableError } from '../errors/errors.ts';

/** The queue cannot be reached. It may have accepted the job. */
export class QueueUnavailableError extends UnavailableError {
  override readonly name = 'QueueUnavailableError';
  override readonly code = 'queue-unavailable';
  constructor(cause?: unknown) {
    super('The queue is not available at the moment; please retry', { cause, retryAfterSeconds: 1 });
  }
}
