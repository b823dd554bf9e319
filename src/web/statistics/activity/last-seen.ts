import { readStored, writeStored } from '../../platform/ui/stored-value.ts';

const prefix = 'holdfast-activity-seen:';

/** The time of the newest event of the organization that this browser has shown; null: none yet. */
export function readLastSeen(organization: string): string | null {
  return readStored(prefix + organization);
}

/** Keeps it. Without storage, nothing is marked as new. */
export function noteSeen(organization: string, at: string): void {
  writeStored(prefix + organization, at);
}
