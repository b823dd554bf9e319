import type { TSchema } from 'typebox';

const nameKey = 'x-component';

/** Gives a schema a name and an example in the OpenAPI document. */
export function component<Schema extends TSchema>(name: string, schema: Schema, example: object): Schema {
  return { ...schema, [nameKey]: name, examples: [example] };
}

/** Moves the named schemas below `value` into `components`, and leaves references to them. */
export function extractComponents(value: unknown, components: Record<string, object>): unknown {
  if (Array.isArray(value)) return value.map((each) => extractComponents(each, components));
  if (typeof value !== 'object' || value === null) return value;
  const { [nameKey]: name, ...members } = value as Record<string, unknown>;
  const rest = Object.fromEntries(
    Object.entries(members).map(([key, member]) => [key, extractComponents(member, components)]),
  );
  if (typeof name !== 'string') return rest;
  components[name] = rest;
  return { $ref: `#/components/schemas/${name}` };
}
