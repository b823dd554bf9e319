import type { StackRef } from '../platform/app/contract.ts';
import { createStoredList } from '../platform/ui/stored-value.ts';

const maxFavorites = 50;

/** Favorite stacks, kept in this browser. */
const favorites = createStoredList<StackRef>('holdfast.favorites', (stored) =>
  stored.filter(isStackRef).slice(0, maxFavorites),
);

export const useFavorites = favorites.use;

export function useIsFavorite(stack: StackRef): boolean {
  return useFavorites().some((each) => isSame(each, stack));
}

/** Adds a stack to the favorites, or removes it. */
export function toggleFavorite({ organization, project, stack }: StackRef): void {
  const chosen = { organization, project, stack };
  const all = favorites.read();
  const others = all.filter((each) => !isSame(each, chosen));
  favorites.set(others.length < all.length ? others : [...others, chosen].slice(-maxFavorites));
}

function isStackRef(value: unknown): value is StackRef {
  if (typeof value !== 'object' || value === null) return false;
  const { organization, project, stack } = value as Partial<Record<keyof StackRef, unknown>>;
  return [organization, project, stack].every((part) => typeof part === 'string' && part !== '');
}

function isSame(one: StackRef, other: StackRef): boolean {
  return one.organization === other.organization && one.project === other.project && one.stack === other.stack;
}
