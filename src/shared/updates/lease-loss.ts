import { ForbiddenError } from '../platform/errors/errors.ts';

/**
 * Reasons why a lease ends although its holder renews it. The rollback monitor sets the last, triggers on tokens, users, memberships and
 * grants the first five.
 */
export const leaseLosses = {
  'token-revoked': 'the API token under which it was started was revoked',
  'token-expired': 'the API token under which it was started has expired',
  'user-deactivated': 'the user who started it was deactivated',
  'membership-ended': 'the user who started it may no longer update stacks of this organization',
  'grant-ended': 'its token may no longer update this stack',
  'time-limit': 'it has reached the maximum duration of an update (HOLDFAST_UPDATE_HOURS of the server)',
  'database-restored':
    'the database of the server was restored, or has failed over, and may lack what this update has saved',
} as const;
export type LeaseLoss = keyof typeof leaseLosses;
export type EndReason = LeaseLoss | 'lease-expired' | 'cancelled';

export function isLeaseLoss(endReason: string | null): endReason is LeaseLoss {
  return endReason !== null && Object.hasOwn(leaseLosses, endReason);
}

export function describeLoss(loss: LeaseLoss): string {
  return leaseLosses[loss];
}

export function describeRest(loss: LeaseLoss): string {
  return loss === 'database-restored'
    ? 'Before the next update, run `pulumi state repair`, then `pulumi refresh`, which compares the state with what exists'
    : 'What it has saved is kept';
}

const notValid = 'The lease of this update is no longer valid: it has ended, was cancelled or has expired';

/** The database does not know the lease, or not as valid. It may have lost it at `lostAt`. */
export function describeUnknown(lostAt: Date | null): string {
  if (lostAt === null) return notValid;
  const refresh = describeRest('database-restored');
  return `${notValid}, or was lost: the database of the server was restored, or has failed over, at ${lostAt.toISOString()}. ${refresh}`;
}

export const leaseLostCode = 'lease-lost';

/** On a 403 the CLI considers its lease lost and stops; on any other status it retries (pkg/backend/httpstate/state.go). */
export class LeaseLostError extends ForbiddenError {
  override readonly name = 'LeaseLostError';
  override readonly code = leaseLostCode;
  constructor(reason = notValid) {
    super(reason);
  }
}
