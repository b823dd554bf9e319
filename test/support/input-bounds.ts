/** A JSON schema, as far as bounds are concerned. */
interface Schema {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly items?: Schema | readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
}

/** Texts without a maximum length, lists without a maximum count and maps without a maximum size, by their paths. */
export function listUnbounded(schema: Schema, path: string): string[] {
  if (schema.const !== undefined || schema.enum !== undefined) return [];
  const found = [...(schema.anyOf ?? []), ...(schema.allOf ?? []), ...(schema.oneOf ?? [])].flatMap((each) =>
    listUnbounded(each, path),
  );
  if (schema.type === 'string' && schema.maxLength === undefined) found.push(path);
  if (schema.type === 'array') {
    const { items = [] } = schema;
    if (!Array.isArray(items) && schema.maxItems === undefined) found.push(`${path} (count)`);
    for (const each of [items].flat() as Schema[]) found.push(...listUnbounded(each, `${path}[]`));
  }
  for (const [name, each] of Object.entries(schema.properties ?? {}))
    found.push(...listUnbounded(each, `${path}/${name}`));
  const { additionalProperties: others, patternProperties = {} } = schema;
  for (const each of [...Object.values(patternProperties), ...(typeof others === 'object' ? [others] : [])]) {
    if (schema.maxProperties === undefined) found.push(`${path} (count)`);
    found.push(...listUnbounded(each, `${path}{}`));
  }
  return [...new Set(found)];
}
