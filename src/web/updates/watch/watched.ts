import { isGone } from '../../platform/app/api-error.ts';
import type { StackRef } from '../../platform/app/procedure-types.ts';
import { createStoredList } from '../../platform/ui/stored-value.ts';

export const maxWatched = 20;

/** A notification shows its end. */
export interface Watched extends StackRef {
  /** The user who watches it: others may use the same browser. */
  readonly login: string;
  /** Null: all updates of the stack. */
  readonly updateId: string | null;
  /** By the server's clock; null: none is known yet. */
  readonly endedAt: string | null;
}

/** Stored in this browser. */
const watched = createStoredList('holdfast.watched', parseWatched);

export const listWatched = watched.read;
export const useWatched = watched.use;

export function parseWatched(stored: unknown): readonly Watched[] {
  return Array.isArray(stored) ? stored.filter(isWatched).slice(-maxWatched) : [];
}

function isWatched(value: unknown): value is Watched {
  if (typeof value !== 'object' || value === null) return false;
  const { endedAt, login, organization, project, stack, updateId } = value as Partial<Record<keyof Watched, unknown>>;
  const isText = (part: unknown): boolean => typeof part === 'string' && part !== '';
  return (
    [login, organization, project, stack].every(isText) &&
    [endedAt, updateId].every((part) => part === null || isText(part))
  );
}

export function isSameWatch(one: Omit<Watched, 'endedAt'>, other: Omit<Watched, 'endedAt'>): boolean {
  return (['login', 'organization', 'project', 'stack', 'updateId'] as const).every(
    (name) => one[name] === other[name],
  );
}

/** Watches a stack or an update, or records the last ended update. If there are too many, the oldest one is dropped. */
export function watch(one: Watched): void {
  watched.set([...watched.read().filter((each) => !isSameWatch(each, one)), one].slice(-maxWatched));
}

/** Records an end if the stack is still watched: another tab may have stopped that. */
export function noteEnd(one: Watched, endedAt: string): void {
  watched.set(watched.read().map((each) => (isSameWatch(each, one) ? { ...each, endedAt } : each)));
}

/** Follows a renamed stack, and ends with a deleted one. If it is unknown which is the case, `find` rejects, and the watch stays. */
export async function followRename(
  one: Watched,
  find: () => Promise<Pick<StackRef, 'project' | 'stack'> | null>,
): Promise<void> {
  const renamed = await find().catch((error: unknown) => {
    if (isGone(error)) return null;
    throw error;
  });
  unwatch(one);
  if (renamed) watch({ ...one, project: renamed.project, stack: renamed.stack });
}

export function unwatch(one: Omit<Watched, 'endedAt'>): void {
  watched.set(watched.read().filter((each) => !isSameWatch(each, one)));
}
