import { BackupError } from '../../shared/backup/backup-error.ts';
import { type FailedAttempts, hasPassed } from '../../shared/backup/backup-status.ts';

const hourMs = 3600 * 1000;
const longestPauseMs = 6 * hourMs;

/**
 * Each attempt copies or reads everything. After a fault, the next one waits for an hour, then twice as long each time, up to six hours.
 * Throws BackupError until then.
 */
export function assertPauseOver({ at, count, error }: FailedAttempts, now: number): void {
  const next = at + Math.min(hourMs * 2 ** (count - 1), longestPauseMs);
  // The clock may have been set back.
  if (now >= next || !hasPassed(at, now)) return;
  throw new BackupError(`The next attempt is at ${new Date(next).toISOString()}. The last one failed: ${error}`);
}
