import { createHash } from 'node:crypto';
import { AppError, InvalidRequestError } from '../../../shared/platform/errors/errors.ts';

/** Revisions that the caller has read; null: the caller does not say, and any will do. */
export type SeenRevisions = readonly string[] | null;

/** Who has made the last change, and when. */
export interface LastEdit {
  /** Null: nobody with a login, such as a token of a CI run. */
  readonly by: string | null;
  readonly at: Date;
}

/** What was to be changed is no longer what the caller has read. tRPC calls it a conflict, HTTP a failed precondition. */
export class EditConflictError extends AppError {
  override readonly name = 'EditConflictError';
  readonly status = 412;
  readonly code = 'edit-conflict';
}

const revisionChars = 22;
/** As many as anybody may name, each in quotes and perhaps weakened by a proxy on the way. */
const maxHeaderChars = 1_000;
const tagPattern = /^(?:W\/)?"([\x21\x23-\x7e]*)"$/;

/** Identifies a state of something that can be edited: equal for equal values, whoever has written them. */
export function revisionOf(editable: Readonly<Record<string, unknown>>): string {
  return createHash('sha256').update(JSON.stringify(editable)).digest('base64url').slice(0, revisionChars);
}

/** Revisions of an If-Match header (RFC 9110, 13.1.1). Throws InvalidRequestError. */
export function seenByHeader(header: string | undefined): SeenRevisions {
  const tags = header?.trim();
  if (tags === undefined || tags === '*') return null;
  const found = tags.split(',').map((tag) => tagPattern.exec(tag.trim())?.[1]);
  if (tags.length > maxHeaderChars || found.includes(undefined))
    throw new InvalidRequestError('If-Match has no entity tags: send the ETag of what you have read, or leave it out');
  return found as string[];
}

/** The same for the field of a procedure's input. */
export function seenByField(revision: string | undefined): SeenRevisions {
  return revision === undefined ? null : [revision];
}

/** An ETag header. */
export function tagOf(revision: string): string {
  return `"${revision}"`;
}

/** Throws EditConflictError if what is there, which must be locked, is not what the caller has seen. `what`: such as "this rule". */
export async function assertSeen(
  seen: SeenRevisions,
  revision: string,
  what: string,
  findLastEdit: () => Promise<LastEdit | null> | LastEdit | null,
): Promise<void> {
  if (seen === null || seen.includes(revision)) return;
  const last = await findLastEdit();
  const when = last === null ? '' : ` at ${last.at.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
  throw new EditConflictError(
    `${last?.by ?? 'Somebody'} has changed ${what}${when}, after you had read it. Your change was not made: read it again first`,
  );
}
