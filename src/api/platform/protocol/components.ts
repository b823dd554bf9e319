import type { TSchema } from 'typebox';
import { exampleOf } from './examples.ts';

const nameKey = 'x-component';
/** Not `examples`: @fastify/swagger moves members of that name from some schemas to their media types. */
const exampleKey = 'x-example';

/** Gives a schema a name in the OpenAPI document. Without `example`, the example is made from the schema. */
export function component<Schema extends TSchema>(name: string, schema: Schema, example?: object): Schema {
  return { ...schema, [nameKey]: name, ...(example === undefined ? {} : { [exampleKey]: example }) };
}

/** Moves the named schemas into `components`, and leaves references. */
export function extractComponents(value: unknown, components: Record<string, object>): unknown {
  if (Array.isArray(value)) return value.map((each) => extractComponents(each, components));
  if (typeof value !== 'object' || value === null) return value;
  const { [nameKey]: name, [exampleKey]: given, ...members } = value as Record<string, unknown>;
  const rest = Object.fromEntries(
    Object.entries(members).map(([key, member]) => [key, extractComponents(member, components)]),
  );
  if (typeof name !== 'string') return rest;
  const example = given ?? exampleOf(members, { isRequest: name.endsWith('Request') });
  const described = { ...rest, examples: [example] };
  const earlier = components[name];
  if (earlier && JSON.stringify(earlier) !== JSON.stringify(described))
    throw new Error(`Two schemas have the name ${name} in the OpenAPI document`);
  components[name] = described;
  return { $ref: `#/components/schemas/${name}` };
}
