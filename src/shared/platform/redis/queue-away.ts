import { UnavailableError } from '../errors/errors.ts';

/** The queue cannot be reached: whether it has taken the job is not known. */
export class QueueAwayError extends UnavailableError {
  override readonly name = 'QueueAwayError';
  override readonly code = 'queue-away';
  constructor(cause?: unknown) {
    super('The queue is not available at the moment; please retry', { cause, retryAfterSeconds: 1 });
  }
}
