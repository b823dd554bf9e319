import { expireUpdate } from '../../shared/updates/cancel-or-expire.ts';
import { noteEnded } from '../../shared/updates/end-revoked-leases.ts';
import { describeLoss, describeRest, type LeaseLoss, LeaseLostError } from '../../shared/updates/lease-loss.ts';
import type { UpdateRow } from '../../shared/updates/update-repository.ts';
import { isActive } from '../../shared/updates/update-state.ts';
import type { ApiContext } from '../platform/api-context.ts';
import { compactSoon } from './compaction-calls.ts';

/** The error for the holder of a revoked lease. First cancels the update, so that its stack is free when the holder is notified. */
export async function revokedLeaseError(
  context: ApiContext,
  update: UpdateRow,
  loss: LeaseLoss,
): Promise<LeaseLostError> {
  if (isActive(update.status)) {
    try {
      const ended = await expireUpdate(context.db, update.id);
      if (ended) noteEnded(context, ended);
      if (ended && update.journalVersion > 0) compactSoon(context, update.id);
    } catch (error) {
      // The call is rejected in any case; the sweep will end the update.
      context.logger.warn(
        { updateId: update.id, err: error },
        'update with a revoked lease left to the background task',
      );
    }
  }
  return new LeaseLostError(`This update was cancelled: ${describeLoss(loss)}. ${describeRest(loss)}`);
}
