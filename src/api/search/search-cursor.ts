import { type Static, Type } from 'typebox';
import { decodeCursor, encodeCursor, Name, text } from '../access/procedures/inputs.ts';
import type { SearchCursor } from './search-service.ts';

const At = Type.Union([text(1_000), Type.Null()]);
const position = [Name, Name, Name, At, At] as const;
const CursorFields = Type.Tuple([...position]);
const CountedFields = Type.Tuple([...position, Type.Integer({ minimum: 0 }), Type.Boolean()]);

/** `isCut`: there may be more. */
export interface SearchTotal {
  readonly total: number;
  readonly isCut: boolean;
}

export function encodeSearchCursor(at: SearchCursor): string {
  return encodeCursor(fieldsOf(at));
}

export function decodeSearchCursor(cursor: string | null | undefined): SearchCursor | null {
  const read = decodeCursor(cursor, CursorFields);
  return read === null ? null : positionOf(read);
}

/** The total is counted only once, for the first page. */
export function encodeCountedCursor(at: SearchCursor, { isCut, total }: SearchTotal): string {
  return encodeCursor([...fieldsOf(at), total, isCut]);
}

/** Null for the first page. Throws InvalidRequestError. */
export function decodeCountedCursor(
  cursor: string | null,
): { readonly after: SearchCursor; readonly counted: SearchTotal } | null {
  const read = decodeCursor(cursor, CountedFields);
  if (read === null) return null;
  const [organization, project, stack, place, key, total, isCut] = read;
  return { after: positionOf([organization, project, stack, place, key]), counted: { total, isCut } };
}

function fieldsOf({ key, organization, place, project, stack }: SearchCursor) {
  return [organization, project, stack, place, key] as const;
}

function positionOf([organization, project, stack, place, key]: Static<typeof CursorFields>): SearchCursor {
  return { organization, project, stack, place, key };
}
