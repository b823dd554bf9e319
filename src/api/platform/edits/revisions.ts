import { createHash } from 'node:crypto';
import { AppError, InvalidRequestError } from '../../../shared/platform/errors/errors.ts';

/** Revisions that the caller has read; null: any revision matches. */
export type SeenRevisions = readonly string[] | null;

export interface LastEdit {
  /** Null: nobody with a login. */
  readonly by: string | null;
  readonly at: Date;
}

/** tRPC calls it a conflict, HTTP a failed precondition. */
export class EditConflictError extends AppError {
  override readonly name = 'EditConflictError';
  readonly status = 412;
  readonly code = 'edit-conflict';
}

const revisionChars = 22;
/** A header has several revisions, each quoted and possibly weakened by a proxy. */
const maxHeaderChars = 1_000;
const tagPattern = /^(?:W\/)?"([\x21\x23-\x7e]*)"$/;

/** Equal for equal values, regardless of their author. */
export function revisionOf(editable: Readonly<Record<string, unknown>>): string {
  return createHash('sha256').update(JSON.stringify(editable)).digest('base64url').slice(0, revisionChars);
}

/** If-Match (RFC 9110, 13.1.1). Throws InvalidRequestError. */
export function seenByHeader(header: string | undefined): SeenRevisions {
  const tags = header?.trim();
  if (tags === undefined || tags === '*') return null;
  const found = tags.split(',').map((tag) => tagPattern.exec(tag.trim())?.[1]);
  if (tags.length > maxHeaderChars || found.includes(undefined))
    throw new InvalidRequestError('If-Match has no entity tags: send the ETag that you have read, or omit the header');
  return found as string[];
}

export function seenByField(revision: string | undefined): SeenRevisions {
  return revision === undefined ? null : [revision];
}

export function tagOf(revision: string): string {
  return `"${revision}"`;
}

/** Throws EditConflictError. The caller has locked the item. `what`: for example "this rule". */
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
    `${last?.by ?? 'Another user'} has changed ${what}${when}, after you read it. Your change was not made: read it again first`,
  );
}
