import { Type } from 'typebox';
import { decodeCursor, encodeCursor, Name, text } from '../access/procedures/inputs.ts';
import type { SearchCursor } from './search-service.ts';

const At = Type.Union([text(1_000), Type.Null()]);
const CursorFields = Type.Tuple([Name, Name, Name, At, At]);

/** A position in the results as text. */
export function encodeSearchCursor({ key, organization, place, project, stack }: SearchCursor): string {
  return encodeCursor([organization, project, stack, place, key]);
}

/** Throws InvalidRequestError. */
export function decodeSearchCursor(cursor: string | null | undefined): SearchCursor | null {
  const read = decodeCursor(cursor, CursorFields);
  if (read === null) return null;
  const [organization, project, stack, place, key] = read;
  return { organization, project, stack, place, key };
}
