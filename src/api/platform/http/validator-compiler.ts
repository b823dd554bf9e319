import type { FastifySchemaCompiler } from 'fastify';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { Value } from 'typebox/value';

/**
 * Checks requests against TypeBox schemas. Texts of paths, queries and headers are converted to the types of the schema, but only if
 * they do not match it as they are: nearly all do, and converting costs several times as much as checking.
 */
export const compileValidator: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const validator = Compile(schema);
  return (value) => {
    if (validator.Check(value)) return { value };
    const converted = httpPart === 'body' ? value : Value.Convert(schema, value);
    if (validator.Check(converted)) return { value: converted };
    return { error: validator.Errors(converted) as unknown as Error };
  };
};
