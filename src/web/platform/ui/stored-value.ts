import { useSyncExternalStore } from 'react';

/** Null: there is none, or storage is disabled. */
export function readStored(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

export function writeStored(key: string, text: string): void {
  try {
    localStorage.setItem(key, text);
  } catch {
    // The change then lasts until the user leaves the page.
  }
}

/** A value that is stored in this browser, and that changes in all its tabs at once. `apply` is called after each change. */
export function createStored<T>(
  key: string,
  parse: (text: string | null) => T,
  { textOf = String, apply = () => {} }: { textOf?: (value: T) => string; apply?: (value: T) => void } = {},
) {
  let value = parse(readStored(key));
  const listeners = new Set<() => void>();
  const subscribe = (listener: () => void): (() => void) => {
    listeners.add(listener);
    // Another tab changed it.
    const onStorage = (event: StorageEvent): void => {
      if (event.key !== key) return;
      value = parse(readStored(key));
      apply(value);
      listener();
    };
    addEventListener('storage', onStorage);
    return () => {
      listeners.delete(listener);
      removeEventListener('storage', onStorage);
    };
  };
  const read = (): T => value;
  return {
    read,
    set: (next: T): void => {
      value = next;
      apply(value);
      writeStored(key, textOf(next));
      for (const listener of listeners) listener();
    },
    use: (): T => useSyncExternalStore(subscribe, read),
  };
}

/** The list is stored as JSON. `parse` leaves out invalid items. */
export function createStoredList<T>(key: string, parse: (items: readonly unknown[]) => readonly T[]) {
  const parseText = (text: string | null): readonly T[] => {
    try {
      const stored: unknown = JSON.parse(text ?? '[]');
      return Array.isArray(stored) ? parse(stored) : [];
    } catch {
      return [];
    }
  };
  return createStored(key, parseText, { textOf: JSON.stringify });
}
