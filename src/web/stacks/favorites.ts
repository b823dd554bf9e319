import { useMemo } from 'react';
import type { StackRef } from '../platform/app/procedure-types.ts';
import { createStoredList } from '../platform/ui/stored-value.ts';

const maxFavorites = 50;

interface Favorite extends StackRef {
  /** The owner of the favorite: others may use the same browser. */
  readonly login: string;
}

/** Favorite stacks, stored in this browser. */
const favorites = createStoredList<Favorite>('holdfast.favorites', (stored) =>
  stored.filter(isFavorite).slice(0, maxFavorites),
);

/** Returns none until the user is known. */
export function useFavorites(login: string | undefined): readonly StackRef[] {
  const all = favorites.use();
  return useMemo(() => all.filter((each) => each.login === login), [all, login]);
}

export function useIsFavorite(login: string | undefined, stack: StackRef): boolean {
  return useFavorites(login).some((each) => isSameStack(each, stack));
}

export function toggleFavorite(login: string | undefined, { organization, project, stack }: StackRef): void {
  if (login === undefined) return;
  favorites.set(toggled(favorites.read(), { login, organization, project, stack }));
}

export function toggled(all: readonly Favorite[], one: Favorite): readonly Favorite[] {
  const others = all.filter((each) => each.login !== one.login || !isSameStack(each, one));
  return others.length < all.length ? others : [...others, one].slice(-maxFavorites);
}

function isFavorite(value: unknown): value is Favorite {
  if (typeof value !== 'object' || value === null) return false;
  const { login, organization, project, stack } = value as Partial<Record<keyof Favorite, unknown>>;
  return [login, organization, project, stack].every((part) => typeof part === 'string' && part !== '');
}

function isSameStack(one: StackRef, other: StackRef): boolean {
  return one.organization === other.organization && one.project === other.project && one.stack === other.stack;
}
