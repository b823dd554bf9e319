import { exampleOf } from '../../src/api/platform/protocol/examples.ts';

/** A JSON schema, as far as texts are concerned. */
interface Schema {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly anyOf?: readonly Schema[];
}
type Members = Readonly<Record<string, unknown>>;

/** Inputs like `value`, in each of which one text or one free name that the schema allows has `odd` at its end. */
export function* textVariants(schema: Schema, value: unknown, odd: string): Generator<unknown> {
  if (schema.const !== undefined || schema.enum !== undefined) return;
  if (schema.anyOf) for (const each of schema.anyOf) yield* textVariants(each, value, odd);
  else if (schema.type === 'string') yield `${typeof value === 'string' ? value : ''}${odd}`;
  else if (schema.type === 'array') {
    const [first = exampleOf(schema.items as Members), ...rest] = Array.isArray(value) ? value : [];
    for (const each of textVariants(schema.items ?? {}, first, odd)) yield [each, ...rest];
  } else if (schema.type === 'object') {
    const members = isObject(value) ? value : {};
    for (const [name, member] of Object.entries(schema.properties ?? {})) {
      const given = members[name] ?? exampleOf(member as Members, { isRequest: true, name });
      for (const each of textVariants(member, given, odd)) yield { ...members, [name]: each };
    }
    const { additionalProperties: others, patternProperties = {} } = schema;
    for (const each of [...Object.values(patternProperties), ...(isObject(others) ? [others as Schema] : [])]) {
      const given = Object.values(members)[0] ?? exampleOf(each as Members, { isRequest: true });
      yield { ...members, [`name${odd}`]: given };
      for (const variant of textVariants(each, given, odd)) yield { ...members, name: variant };
    }
    if (schema.properties === undefined && others === undefined) yield* freeVariants(value, odd);
  } else if (schema.type === undefined) yield* freeVariants(value, odd);
}

/** The same of a value without a schema. */
function* freeVariants(value: unknown, odd: string): Generator<unknown> {
  if (typeof value === 'string') yield `${value}${odd}`;
  else if (Array.isArray(value))
    for (const [at, each] of value.entries())
      for (const variant of freeVariants(each, odd)) yield value.with(at, variant);
  else if (isObject(value)) {
    yield { ...value, [`name${odd}`]: 'text' };
    for (const [name, each] of Object.entries(value))
      for (const variant of freeVariants(each, odd)) yield { ...value, [name]: variant };
  }
}

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
