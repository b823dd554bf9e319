import { Type } from 'typebox';

/** Which stored bytes, and how many of them, are to be read back. */
export interface CheckClaim {
  /** Skips what was verified within this time. */
  readonly periodSeconds: number;
  /** What was claimed and not fully read is due again after this time. */
  readonly claimSeconds: number;
  readonly limit: number;
}

/** What is known to be damaged is checked again after this time: somebody may have restored it. */
export const damagedPeriodSeconds = 3600;

/** Of what was marked as damaged: whether it was not before. */
export const MarkedRow = Type.Object({ isNew: Type.Boolean() });
/** What is damaged, and the age of the oldest check. */
export const CheckStatisticsRow = Type.Object({ damaged: Type.Integer(), oldestSeconds: Type.Number() });
