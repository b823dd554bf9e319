import { Type } from 'typebox';
import { decodeCursor, encodeCursor, Name, text } from '../access/procedures/inputs.ts';
import type { SearchPlace } from './search-service.ts';

const At = Type.Union([text(1_000), Type.Null()]);
const Place = Type.Tuple([Name, Name, Name, At, At]);

/** A place in the results as text. */
export function encodePlace({ key, organization, place, project, stack }: SearchPlace): string {
  return encodeCursor([organization, project, stack, place, key]);
}

/** Throws InvalidRequestError. */
export function decodePlace(cursor: string | null | undefined): SearchPlace | null {
  const read = decodeCursor(cursor, Place);
  if (read === null) return null;
  const [organization, project, stack, place, key] = read;
  return { organization, project, stack, place, key };
}
