import { Type } from 'typebox';
import { component } from '../platform/protocol/components.ts';

export const ResourceSearchQuery = Type.Object({
  query: Type.Optional(
    Type.String({
      maxLength: 1_000,
      description: 'Terms that must all match, e.g. `type:aws:rds/* -protect:true version:<6`; all resources if empty',
    }),
  ),
  size: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, description: 'At most 200 are returned' })),
  cursor: Type.Optional(Type.String({ maxLength: 4_000, description: 'From `pagination.next`' })),
  page: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 1_000_000, description: 'Only the first page; use the cursor for others' }),
  ),
  sort: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())], { description: 'Not supported' })),
  properties: Type.Optional(Type.Boolean({ description: 'Not supported' })),
});

const Found = {
  name: Type.String(),
  type: Type.String(),
  urn: Type.String(),
  stack: Type.String(),
  project: Type.String(),
  package: Type.String(),
  module: Type.String(),
  custom: Type.Boolean(),
  delete: Type.Boolean(),
  protected: Type.Boolean(),
  modified: Type.Optional(
    Type.String({ description: 'Absent if the resource has not changed since its stack was first indexed' }),
  ),
};

const Envelope = {
  total: Type.Optional(Type.Integer({ description: 'As counted for the first page; too low if a warning says so' })),
  pagination: Type.Object({ next: Type.Optional(Type.String()), cursor: Type.Optional(Type.String()) }),
  cutShort: Type.Boolean({ description: 'The search took too long: there may be more, found with `pagination.next`' }),
  trimmed: Type.Boolean({ description: 'There may be stacks that the caller may not read' }),
  behind: Type.Union(
    [
      Type.Object({
        stacks: Type.Integer({ description: 'Stacks whose newest state is not indexed yet' }),
        oldestSeconds: Type.Integer({ description: 'Time since the first of them changed' }),
      }),
      Type.Null(),
    ],
    { description: 'Lag of the index; null: it has the newest state of each stack' },
  ),
};

/** apitype.ResourceSearchResponse, with more members than the CLI reads. */
export const ResourceSearchResponse = component(
  'ResourceSearchResponse',
  Type.Object({
    ...Envelope,
    resources: Type.Array(
      Type.Object({
        ...Found,
        modified: Type.String({
          description: 'Empty if the resource has not changed since its stack was first indexed',
        }),
        'parent.urn': Type.Union([Type.String(), Type.Null()]),
        'provider.urn': Type.Union([Type.String(), Type.Null()]),
      }),
    ),
  }),
);

/** apitype.InsightsResourceSearchResponse, also with more members than the CLI reads. */
export const ResourceSearchV2Response = component(
  'ResourceSearchV2Response',
  Type.Object({
    ...Envelope,
    resources: Type.Array(
      Type.Object({
        ...Found,
        external: Type.Boolean(),
        parent_urn: Type.Optional(Type.String()),
        provider_urn: Type.Optional(Type.String()),
      }),
    ),
  }),
);
