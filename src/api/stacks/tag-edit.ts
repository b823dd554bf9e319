import { NotFoundError } from '../../shared/platform/errors/errors.ts';
import { parseTags, type Tags } from '../../shared/stacks/tags.ts';
import { EditConflictError } from '../platform/edits/revisions.ts';

export interface TagEdit {
  readonly name: string;
  /** Null removes the tag. */
  readonly value: string | null;
  /**
   * The value that the caller has read, null if the tag did not exist. A tag that has changed since is kept, unless it already has the new
   * value. Undefined: any value is replaced.
   */
  readonly seen?: string | null | undefined;
  readonly mustExist?: true;
}

/** Throws EditConflictError, NotFoundError, and InvalidRequestError for an invalid name or value. */
export function editTag(tags: Tags, { mustExist, name, seen, value }: TagEdit): Tags {
  const now = tags[name] ?? null;
  if (mustExist && now === null) throw new NotFoundError(`The stack has no tag ${name}`);
  if (seen !== undefined && now !== seen && now !== value) throw new EditConflictError(conflictText(name, seen, now));
  if (value !== null) return parseTags({ ...tags, [name]: value });
  return parseTags(Object.fromEntries(Object.entries(tags).filter(([each]) => each !== name)));
}

function conflictText(name: string, seen: string | null, now: string | null): string {
  if (now === null) return `Another user has removed the tag ${name} after you read it`;
  if (seen === null) return `The stack already has a tag ${name} with another value, which stays`;
  return `Another user has changed the tag ${name} after you read it: its new value stays`;
}
