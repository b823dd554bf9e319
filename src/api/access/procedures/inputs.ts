import { type Static, type TSchema, Type } from 'typebox';
import { InvalidRequestError } from '../../../shared/platform/errors/errors.ts';
import { type StandardSchema, standard } from '../../../shared/platform/schema/standard-schema.ts';

/** A TypeBox schema as the input of a procedure; the schema stays available for inspection. */
export function input<S extends TSchema>(schema: S): StandardSchema<Static<S>> & { readonly schema: S } {
  return { ...standard(schema), schema };
}

/** Text that Postgres can store. */
export function text(maxLength: number) {
  return Type.String({ maxLength, pattern: '^[^\\u0000]*$' });
}

/** The maximum length of existing names. */
export const Name = text(200);
export const Id = Type.String({
  maxLength: 36,
  pattern: '^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$',
});

/** The revision that the caller has read: a newer one is not overwritten. If missing, any revision is overwritten. */
export const Revision = Type.Optional(text(100));

export const OrganizationInput = Type.Object({ organization: Name });
export const StackInput = Type.Object({ organization: Name, project: Name, stack: Name });

export const defaultPage = 50;
const maxPage = 200;
/** Long enough for names and values with several parts, in any script. */
const maxCursorChars = 4_000;

/** Input of every list. */
export const page = {
  cursor: Type.Optional(Type.Union([text(maxCursorChars), Type.Null()])),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: maxPage })),
};

/** A position in a list as text. */
export function encodeCursor(position: readonly (string | number | boolean | null)[]): string {
  return Buffer.from(JSON.stringify(position)).toString('base64url');
}

/** Reads a cursor that this server has encoded. Throws InvalidRequestError. */
export function decodeCursor<S extends TSchema>(cursor: string | null | undefined, schema: S): Static<S> | null {
  if (cursor === null || cursor === undefined) return null;
  const result = standard(schema)['~standard'].validate(parse(cursor));
  if ('issues' in result) throw new InvalidRequestError('input/cursor was not returned by a list');
  return result.value;
}

/** Reads the query of a download. Throws InvalidRequestError. */
export function readQuery<S extends TSchema>(schema: S, search: unknown): Static<S> {
  const result = standard(schema)['~standard'].validate(search);
  if ('issues' in result && result.issues)
    throw new InvalidRequestError(
      `query ${String(result.issues[0]?.path?.join('/') ?? '')} ${result.issues[0]?.message ?? 'is not valid'}`,
    );
  return (result as { value: Static<S> }).value;
}

function parse(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'));
  } catch {
    return undefined;
  }
}
