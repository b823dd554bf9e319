import type { Static, TSchema } from 'typebox';
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';

/** The part of the Standard Schema interface that slonik and tRPC use. */
export interface StandardSchema<Output> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: 'typebox';
    readonly validate: (value: unknown) => { value: Output } | { issues: { message: string; path: string[] }[] };
    readonly types?: { readonly input: unknown; readonly output: Output };
  };
}

/** Wraps a TypeBox schema as a Standard Schema. Compiled once, on first use. */
export function standard<S extends TSchema>(schema: S): StandardSchema<Static<S>> {
  let compiled: { Check(value: unknown): boolean; Errors(value: unknown): SchemaIssue[] } | undefined;
  return {
    '~standard': {
      version: 1,
      vendor: 'typebox',
      validate: (value) => {
        compiled ??= Compile(schema) as unknown as NonNullable<typeof compiled>;
        if (compiled.Check(value)) return { value: value as Static<S> };
        return {
          issues: compiled.Errors(value).map(({ message, instancePath }) => ({
            message,
            path: instancePath.split('/').slice(1),
          })),
        };
      },
    },
  };
}

interface SchemaIssue {
  readonly instancePath: string;
  readonly message: string;
}

/** A `timestamptz` column. */
export const Timestamp = Type.Refine(
  Type.Unsafe<Date>({}),
  (value) => value instanceof Date,
  () => 'must be a Date',
);

/** A `bytea` column. */
export const Bytes = Type.Refine(
  Type.Unsafe<Buffer>({}),
  (value) => Buffer.isBuffer(value),
  () => 'must be a Buffer',
);

/** `schema` or SQL null. */
export function Nullable<S extends TSchema>(schema: S) {
  return Type.Union([schema, Type.Null()]);
}
