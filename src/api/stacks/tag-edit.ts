import { parseTags, type Tags } from '../../shared/stacks/tags.ts';
import { EditConflictError } from '../platform/edits/revisions.ts';

export interface TagEdit {
  readonly name: string;
  /** Null removes the tag. */
  readonly value: string | null;
  /**
   * The value that the caller has read, null if there was no such tag. A tag that is different now stays, unless it already is
   * as it shall be. Without it, whatever is there is replaced.
   */
  readonly seen?: string | null | undefined;
}

/** The tags after the edit. Throws EditConflictError, and InvalidRequestError for a name or value that no tag can have. */
export function editTag(tags: Tags, { name, seen, value }: TagEdit): Tags {
  const now = tags[name] ?? null;
  if (seen !== undefined && now !== seen && now !== value) throw new EditConflictError(conflictText(name, seen, now));
  if (value !== null) return parseTags({ ...tags, [name]: value });
  return parseTags(Object.fromEntries(Object.entries(tags).filter(([each]) => each !== name)));
}

function conflictText(name: string, seen: string | null, now: string | null): string {
  if (now === null) return `Somebody has removed the tag ${name} after you had read it`;
  if (seen === null) return `The stack has a tag ${name} already, with another value, which stays`;
  return `Somebody has changed the tag ${name} after you had read it: it has another value now, and stays`;
}
