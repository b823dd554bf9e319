import { useSyncExternalStore } from 'react';

const key = 'holdfast.dismissed-steps';
const maxKept = 50;
const listeners = new Set<() => void>();

/** Organizations whose next steps the user has dismissed, kept in this browser. */
let dismissed: readonly string[] = read();

function read(): readonly string[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(key) ?? '[]');
    return Array.isArray(stored) ? stored.filter((each) => typeof each === 'string').slice(-maxKept) : [];
  } catch {
    return [];
  }
}

export function dismissSteps(organization: string): void {
  dismissed = [...dismissed.filter((each) => each !== organization), organization].slice(-maxKept);
  try {
    localStorage.setItem(key, JSON.stringify(dismissed));
  } catch {
    // Storage may be disabled; they then stay away until the user leaves the page.
  }
  for (const listener of listeners) listener();
}

export function useIsDismissed(organization: string): boolean {
  const all = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    () => dismissed,
  );
  return all.includes(organization);
}
