import { DeferredError } from '../../../shared/updates/deferred.ts';
import { StackBusyError } from '../../../shared/updates/update-errors.ts';
import { SupersededError } from './superseding.ts';

/** Reasons for metrics; null for those that are not counted. */
export function refusalReason(error: unknown): string | null {
  if (error instanceof DeferredError) return error.reason;
  if (error instanceof SupersededError) return 'superseded';
  return error instanceof StackBusyError ? 'busy' : null;
}
