import fastJsonStringify from 'fast-json-stringify';
import type { FastifySchemaCompiler, FastifySerializerCompiler } from 'fastify';
import type { TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';
import { Value } from 'typebox/value';

/**
 * Texts of paths, queries and headers are converted to the types of the schema, but only if they do not match as they are: nearly all do,
 * and converting costs several times as much as checking.
 *
 * A schema is compiled by the first request of its route: compiling all at once would take a quarter of the start.
 */
export const compileValidator: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  let compiled: Validator | null = null;
  return (value) => {
    compiled ??= Compile(schema);
    const validator = compiled;
    if (validator.Check(value)) return { value };
    const converted = httpPart === 'body' ? value : Value.Convert(schema, value);
    if (validator.Check(converted)) return { value: converted };
    return { error: validator.Errors(converted) as unknown as Error };
  };
};

/** A schema is compiled by the first response of its route, as above. */
export const compileSerializer: FastifySerializerCompiler<object> = ({ schema }) => {
  let serialize: ((body: unknown) => string) | null = null;
  return (body) => {
    serialize ??= fastJsonStringify(schema);
    return serialize(body);
  };
};

/** A violation as TypeBox reports it. */
export interface SchemaIssue {
  readonly keyword: string;
  readonly instancePath: string;
  readonly message: string;
  readonly params: object;
}

/**
 * Once per path: `body/status must be "succeeded", "failed" or "cancelled"`. For a value that may have one of several forms, the schema
 * reports the violations of each form.
 */
export function describeIssues(issues: readonly SchemaIssue[], part: string): string {
  const paths = new Map<string, SchemaIssue[]>();
  for (const issue of issues) {
    if (issue.keyword === 'anyOf') continue;
    const { instancePath } = issue;
    // Null stands for an absent value; any other value is meant as another form.
    const meansOther = (other: SchemaIssue): boolean =>
      other.instancePath.startsWith(`${instancePath}/`) ||
      (other.instancePath === instancePath && other.keyword !== 'anyOf' && !isNull(other));
    if (isNull(issue) && issues.some(meansOther)) continue;
    paths.set(instancePath, [...(paths.get(instancePath) ?? []), issue]);
  }
  const found = [...paths].map(([path, its]) => `${part}${path} ${describeViolation(its)}`);
  return found.length > 0 ? found.join(', ') : `${part} is not valid`;
}

function describeViolation(issues: readonly SchemaIssue[]): string {
  const expected = new Set<string>();
  const messages = new Set<string>();
  for (const { keyword, message, params } of issues) {
    if (keyword === 'const') expected.add(JSON.stringify((params as { allowedValue?: unknown }).allowedValue));
    else if (message.startsWith('must be ')) expected.add(message.slice('must be '.length));
    else messages.add(message);
  }
  const all = [...expected];
  const last = all.pop();
  if (last !== undefined) messages.add(`must be ${all.length > 0 ? `${all.join(', ')} or ` : ''}${last}`);
  return [...messages].join(', ');
}

function isNull({ keyword, params }: SchemaIssue): boolean {
  return keyword === 'type' && (params as { type?: unknown }).type === 'null';
}
