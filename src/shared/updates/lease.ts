import { ForbiddenError } from '../platform/errors/errors.ts';

/** What an admitted execution-phase call may write to: one update, in the epoch in which the call was let in. */
export interface LeaseFence {
  readonly updateId: string;
  readonly stackId: string;
  readonly epoch: number;
}

/**
 * The lease is dead or foreign. The CLI takes 403 as the end of its lease and stops; any other status it repeats
 * (pkg/backend/httpstate/state.go).
 */
export class LeaseLostError extends ForbiddenError {
  override readonly name = 'LeaseLostError';
  override readonly code = 'lease-lost';
  constructor(reason = 'The lease of this update is no longer valid: it has ended, was cancelled or has expired') {
    super(reason);
  }
}
