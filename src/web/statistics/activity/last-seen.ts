import { readStored, writeStored } from '../../platform/ui/stored-value.ts';

const prefix = 'holdfast-activity-seen:';

/** The time of the newest event of the organization that this browser has shown to the user; null: none yet. */
export function readLastSeen(login: string, organization: string): string | null {
  return readStored(keyOf(login, organization));
}

/** Stores the time. Without storage, no event is marked as new. */
export function noteSeen(login: string, organization: string, at: string): void {
  writeStored(keyOf(login, organization), at);
}

function keyOf(login: string, organization: string): string {
  return `${prefix}${login}/${organization}`;
}
