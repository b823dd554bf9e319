import { Type } from 'typebox';

/** Limits of a claim of stored bytes to read back. */
export interface CheckClaim {
  /** Skips documents that were verified within this time. */
  readonly periodSeconds: number;
  /** Documents that were claimed and not fully read are due again after this time. */
  readonly claimSeconds: number;
  readonly limit: number;
}

/** Damaged documents are checked again after this time: an operator may have restored them. */
export const damagedPeriodSeconds = 3600;

/** Whether the document was not marked as damaged before. */
export const MarkedRow = Type.Object({ isNew: Type.Boolean() });
/** The number of damaged documents, and the age of the oldest check. */
export const CheckStatisticsRow = Type.Object({ damaged: Type.Integer(), oldestSeconds: Type.Number() });
