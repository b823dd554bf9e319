const prefix = 'holdfast-activity-seen:';

/** The time of the newest event of the organization that this browser has shown; null: none yet. */
export function readLastSeen(organization: string): string | null {
  try {
    return localStorage.getItem(prefix + organization);
  } catch {
    return null;
  }
}

/** Keeps it. Without storage, nothing is marked as new. */
export function noteSeen(organization: string, at: string): void {
  try {
    localStorage.setItem(prefix + organization, at);
  } catch {
    // The browser keeps nothing.
  }
}
