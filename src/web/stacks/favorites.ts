import { useSyncExternalStore } from 'react';
import type { StackRef } from '../platform/app/contract.ts';

const key = 'holdfast.favorites';
const maxFavorites = 50;
const listeners = new Set<() => void>();

/** Favorite stacks, kept in this browser. */
let favorites: readonly StackRef[] = read();

function read(): readonly StackRef[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(key) ?? '[]');
    return Array.isArray(stored) ? stored.filter(isStackRef).slice(0, maxFavorites) : [];
  } catch {
    return [];
  }
}

function isStackRef(value: unknown): value is StackRef {
  if (typeof value !== 'object' || value === null) return false;
  const { organization, project, stack } = value as Partial<Record<keyof StackRef, unknown>>;
  return [organization, project, stack].every((part) => typeof part === 'string' && part !== '');
}

function isSame(one: StackRef, other: StackRef): boolean {
  return one.organization === other.organization && one.project === other.project && one.stack === other.stack;
}

/** Adds a stack to the favorites, or removes it. */
export function toggleFavorite({ organization, project, stack }: StackRef): void {
  const chosen = { organization, project, stack };
  const others = favorites.filter((each) => !isSame(each, chosen));
  favorites = others.length < favorites.length ? others : [...others, chosen].slice(-maxFavorites);
  try {
    localStorage.setItem(key, JSON.stringify(favorites));
  } catch {
    // Storage may be disabled; the change then lasts until the user leaves the page.
  }
  for (const listener of listeners) listener();
}

export function useFavorites(): readonly StackRef[] {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      // Another tab changed them.
      const onStorage = (event: StorageEvent): void => {
        if (event.key !== key) return;
        favorites = read();
        listener();
      };
      addEventListener('storage', onStorage);
      return () => {
        listeners.delete(listener);
        removeEventListener('storage', onStorage);
      };
    },
    () => favorites,
  );
}
