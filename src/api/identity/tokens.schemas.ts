import { type Static, Type } from 'typebox';
import { component } from '../platform/protocol/components.ts';
import { Maybe } from '../platform/protocol/core.ts';

/** The previous secret may stay valid for this long after a rotation. */
export const maxOverlapSeconds = 30 * 86_400;

const Scope = Type.Object({ permissions: Type.Array(Type.String(), { maxItems: 100 }), stacks: Type.String() });

/** Times are seconds since 1970; 0: never. */
export const CreateTokenRequest = component(
  'CreateTokenRequest',
  Type.Object({
    name: Type.Optional(Type.String({ pattern: '^[a-zA-Z0-9][a-zA-Z0-9_.:@ -]{0,99}$' })),
    description: Type.Optional(Type.String()),
    expires: Type.Optional(Type.Integer({ minimum: 0, maximum: 253_402_300_799 })),
    admin: Type.Optional(Type.Boolean()),
    /** As Pulumi's provider sends it. */
    roleID: Maybe(Type.String({ description: 'Of a token of an organization: member or admin' })),
    service: Type.Optional(Type.Boolean()),
    scopes: Type.Optional(Type.Union([Type.Array(Scope), Type.Null()])),
  }),
  { name: 'ci', expires: 1_795_867_200, scopes: [{ permissions: ['write'], stacks: 'website/*' }] },
);
export type CreateTokenRequest = Static<typeof CreateTokenRequest>;

export const CreateTokenResponse = component(
  'CreateTokenResponse',
  Type.Object({
    id: Type.String(),
    tokenValue: Type.String(),
    expires: Type.Integer(),
  }),
);

export const RotateTokenRequest = Type.Union([
  component(
    'RotateTokenRequest',
    Type.Object({ overlapSeconds: Type.Optional(Type.Integer({ minimum: 0, maximum: maxOverlapSeconds })) }),
    { overlapSeconds: 86_400 },
  ),
  Type.Null(),
]);

export const RotateTokenResponse = component(
  'RotateTokenResponse',
  Type.Object({
    ...CreateTokenResponse.properties,
    /** When the previous secret expires. */
    previousExpires: Type.Integer(),
  }),
);

export const ListTokensResponse = component(
  'ListTokensResponse',
  Type.Object({
    tokens: Type.Array(
      Type.Object({
        id: Type.String(),
        name: Type.String(),
        description: Type.String(),
        kind: Type.String(),
        admin: Type.Boolean(),
        created: Type.String(),
        createdBy: Type.String(),
        expires: Type.Integer(),
        lastUsed: Type.Integer(),
        previousExpires: Type.Integer(),
        scopes: Type.Union([Type.Array(Scope), Type.Null()]),
      }),
    ),
  }),
);
