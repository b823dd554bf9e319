import { type TObject, Type } from 'typebox';
import { type KindName, kindNames, type Spec } from './kinds/kind.ts';
import { kinds } from './kinds/kinds.ts';

export const apiVersion = 'holdfast/v1';

export type Labels = Readonly<Record<string, string>>;

export interface Document {
  readonly kind: KindName;
  readonly organization: string;
  readonly name: string;
  readonly labels: Labels;
  /** The completed spec; a secret is its reference. */
  readonly spec: Spec;
  /** The folder that contains the file. */
  readonly folder: string;
  /** `file:line:column` of the document, or of a field in its spec. */
  locate(path?: readonly (string | number)[]): string;
}

/** The location of a secret. */
export type SecretReference = { readonly env: string } | { readonly file: string };

const closed = { additionalProperties: false } as const;
const Name = Type.String({ minLength: 1, maxLength: 240, pattern: '^[^\\u0000-\\u001f]*$' });
const Metadata = Type.Object(
  {
    name: Name,
    organization: Type.Optional(Type.String({ minLength: 1, description: 'Default: --organization' })),
    labels: Type.Optional(
      Type.Unsafe<Record<string, string>>(
        Type.Object({}, { additionalProperties: Type.String({ maxLength: 200 }), maxProperties: 20 }),
      ),
    ),
  },
  closed,
);

export const Envelope = Type.Object(
  {
    apiVersion: Type.Literal(apiVersion),
    kind: Type.Enum([...kindNames]),
    metadata: Metadata,
    spec: Type.Optional(Type.Object({})),
  },
  closed,
);

/** For editors. */
export function documentSchema(): object {
  const ofKind = (kind: KindName): TObject => {
    const { description, names, spec } = kinds[kind];
    const name = names ? Type.String({ pattern: names.pattern, description: names.form }) : Name;
    const metadata = Type.Object({ ...Metadata.properties, name }, closed);
    return Type.Object(
      { apiVersion: Type.Literal(apiVersion), kind: Type.Literal(kind), metadata, spec },
      { ...closed, description },
    );
  };
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: 'holdfast-v1.schema.json',
    title: 'Holdfast configuration',
    type: 'object',
    properties: { apiVersion: { const: apiVersion }, kind: { enum: [...kindNames] } },
    required: ['apiVersion', 'kind', 'metadata'],
    oneOf: kindNames.map(ofKind),
  };
}

/** Identifies a declared object. */
export function keyOf({ kind, name, organization }: Pick<Document, 'kind' | 'name' | 'organization'>): string {
  return JSON.stringify([organization, kind, name]);
}

export function titleOf({ kind, name, organization }: Pick<Document, 'kind' | 'name' | 'organization'>): string {
  return kind === 'Organization' ? `${kind} ${name}` : `${kind} ${organization}/${name}`;
}
