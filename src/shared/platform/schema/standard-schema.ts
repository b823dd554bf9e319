import type { Static, TSchema } from 'typebox';
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';

/** The part of the interface that slonik and tRPC use. */
export interface StandardSchema<Output> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: 'typebox';
    readonly validate: (value: unknown) => { value: Output } | { issues: { message: string; path: string[] }[] };
    readonly types?: { readonly input: Output; readonly output: Output };
  };
}

/** A schema of 25 columns takes 0.3 ms to compile, and each call creates its statements anew. */
const validators = new WeakMap<TSchema, Validator>();

interface Validator {
  Check(value: unknown): boolean;
  Errors(value: unknown): SchemaIssue[];
}

export function standard<S extends TSchema>(schema: S): StandardSchema<Static<S>> {
  return {
    '~standard': {
      version: 1,
      vendor: 'typebox',
      validate: (value) => {
        const validator = validatorOf(schema);
        if (validator.Check(value)) return { value: value as Static<S> };
        return {
          issues: validator.Errors(value).map(({ message, instancePath }) => ({
            message,
            path: instancePath.split('/').slice(1),
          })),
        };
      },
    },
  };
}

function validatorOf(schema: TSchema): Validator {
  let validator = validators.get(schema);
  if (!validator) {
    validator = Compile(schema) as unknown as Validator;
    validators.set(schema, validator);
  }
  return validator;
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
