import { type Static, Type } from 'typebox';
import { component } from '../platform/protocol/components.ts';

const Name = Type.String({ pattern: '^[^\\u0000]{1,250}$' });
const Labels = Type.Unsafe<Record<string, string>>(
  Type.Object(
    {},
    {
      additionalProperties: Type.String({ maxLength: 200, pattern: '^[^\\u0000]*$' }),
      maxProperties: 20,
      description: 'As the configuration has them',
    },
  ),
);
const key = {
  kind: Type.String({ pattern: '^[A-Za-z]{1,50}$', description: 'Such as Team' }),
  name: Type.String({ ...Name, description: 'As the configuration names it' }),
};
const object = Type.String({ ...Name, description: 'As paths of the API name it: a name or an id' });
const secretDigest = Type.Optional(
  Type.String({
    maxLength: 200,
    pattern: '^[\\x20-\\x7e]*$',
    description: 'A salted hash of the secret that was set last',
  }),
);

export const ManagedObjectsQuery = Type.Object({ continuationToken: Type.Optional(Type.String()) });

export const ListManagedObjectsResponse = component(
  'ListManagedObjectsResponse',
  Type.Object({
    objects: Type.Array(
      Type.Object({ ...key, object, labels: Labels, secretDigest, appliedAt: Type.String(), appliedBy: Type.String() }),
    ),
    continuationToken: Type.Optional(Type.String()),
  }),
);

export const ChangeManagedObjectsRequest = component(
  'ChangeManagedObjectsRequest',
  Type.Object({
    set: Type.Optional(Type.Array(Type.Object({ ...key, object, labels: Labels, secretDigest }), { maxItems: 1_000 })),
    remove: Type.Optional(Type.Array(Type.Object(key), { maxItems: 1_000 })),
  }),
  { remove: [{ kind: 'Team', name: 'platform' }] },
);
export type ChangeManagedObjectsRequest = Static<typeof ChangeManagedObjectsRequest>;
