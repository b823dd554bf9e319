import { type Static, type TSchema, Type } from 'typebox';
import { InvalidRequestError } from '../../../shared/platform/errors/errors.ts';
import { type StandardSchema, standard } from '../../../shared/platform/schema/standard-schema.ts';

/** The schema stays available for inspection. */
export function input<S extends TSchema>(schema: S): StandardSchema<Static<S>> & { readonly schema: S } {
  return { ...standard(schema), schema };
}

/** Postgres cannot store NUL. */
export function text(maxLength: number) {
  return Type.String({ maxLength, pattern: '^[^\\u0000]*$' });
}

/** Existing names are not longer. */
export const Name = text(200);
export const Id = Type.String({
  maxLength: 36,
  pattern: '^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$',
});

/** The revision that the caller has read: a newer one is not overwritten. Missing: any revision is overwritten. */
export const Revision = Type.Optional(text(100));

export const OrganizationInput = Type.Object({ organization: Name });
export const StackInput = Type.Object({ organization: Name, project: Name, stack: Name });

export const defaultPage = 50;
const maxPage = 200;
/** Names and values with several parts fit, in any script. */
const maxCursorChars = 4_000;

export const page = {
  cursor: Type.Optional(Type.Union([text(maxCursorChars), Type.Null()])),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: maxPage })),
};

export function encodeCursor(position: readonly (string | number | boolean | null)[]): string {
  return Buffer.from(JSON.stringify(position)).toString('base64url');
}

/** Throws InvalidRequestError. */
export function decodeCursor<S extends TSchema>(cursor: string | null | undefined, schema: S): Static<S> | null {
  if (cursor === null || cursor === undefined) return null;
  const result = standard(schema)['~standard'].validate(parse(cursor));
  if ('issues' in result) throw new InvalidRequestError('input/cursor was not returned by a list');
  return result.value;
}

/** Throws InvalidRequestError. */
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
