import { Type } from 'typebox';
import { component } from '../platform/protocol/components.ts';
import { Maybe } from '../platform/protocol/core.ts';

const Effect = Type.Union([Type.Literal('allow'), Type.Literal('deny')]);

/** The permissions include all that the requested ones imply. */
export const GrantResponse = component(
  'GrantResponse',
  Type.Object({
    id: Type.String(),
    effect: Effect,
    permissions: Type.Array(Type.String()),
    role: Type.Optional(Type.Object({ id: Type.String(), name: Type.String() })),
    /** `project/stack`, where `*` matches any characters. */
    stacks: Type.String(),
    /** Without a value: the tag with any value. */
    tag: Type.Optional(Type.Object({ name: Type.String(), value: Type.Optional(Type.String()) })),
    /** Exactly one of user, team and token. */
    user: Type.Optional(Type.String()),
    team: Type.Optional(Type.String()),
    token: Type.Optional(Type.Object({ id: Type.String(), name: Type.String() })),
    created: Type.String(),
  }),
);

export const GrantsQuery = Type.Object({
  user: Type.Optional(Type.String()),
  team: Type.Optional(Type.String()),
  token: Type.Optional(Type.String()),
  continuationToken: Type.Optional(Type.String()),
});
export type GrantsQuery = Type.Static<typeof GrantsQuery>;

export const ListGrantsResponse = component(
  'ListGrantsResponse',
  Type.Object({
    grants: Type.Array(GrantResponse),
    continuationToken: Type.Optional(Type.String()),
  }),
);

/** Either permissions or a role; one of user, team and token. */
export const CreateGrantRequest = component(
  'CreateGrantRequest',
  Type.Object({
    effect: Effect,
    permissions: Maybe(Type.Array(Type.String(), { maxItems: 20 })),
    /** An id, as in `token`. */
    role: Maybe(Type.String()),
    /** By default, all stacks. */
    stacks: Maybe(Type.String()),
    tag: Maybe(Type.Object({ name: Type.String(), value: Maybe(Type.String()) })),
    user: Maybe(Type.String()),
    team: Maybe(Type.String()),
    token: Maybe(Type.String()),
  }),
  { effect: 'allow', permissions: ['write'], stacks: 'website/*', team: 'platform' },
);
export type CreateGrantRequest = Type.Static<typeof CreateGrantRequest>;

export const ChangeGrantsRequest = component(
  'ChangeGrantsRequest',
  Type.Object({
    add: Type.Optional(Type.Array(CreateGrantRequest, { maxItems: 200 })),
    remove: Type.Optional(Type.Array(Type.String(), { maxItems: 200 })),
  }),
  { add: [{ effect: 'allow', permissions: ['write'], stacks: 'website/*', team: 'platform' }] },
);
export type ChangeGrantsRequest = Type.Static<typeof ChangeGrantsRequest>;

/** In the order of the request; in place of a grant that already existed, the existing one. */
export const ChangeGrantsResponse = component(
  'ChangeGrantsResponse',
  Type.Object({ added: Type.Array(GrantResponse) }),
);

export const GrantParams = Type.Object({ organization: Type.String(), grant: Type.String() });

export const AccessQuery = Type.Object({
  /** Users by default. */
  holders: Type.Optional(Type.Union([Type.Literal('users'), Type.Literal('tokens')])),
  user: Type.Optional(Type.String()),
  /** The token may be a member's. */
  token: Type.Optional(Type.String()),
  continuationToken: Type.Optional(Type.String()),
});
export type AccessQuery = Type.Static<typeof AccessQuery>;

const Reason = Type.Union([
  Type.Literal('role'),
  Type.Literal('grants'),
  Type.Literal('included'),
  Type.Literal('scopes'),
  Type.Literal('denied'),
  Type.Literal('nothing'),
  Type.Literal('needs'),
]);

export const AccessResponse = component(
  'AccessResponse',
  Type.Object({
    holders: Type.Array(
      Type.Object({
        user: Type.Optional(Type.Object({ githubLogin: Type.String(), name: Type.String() })),
        token: Type.Optional(
          Type.Object({
            id: Type.String(),
            name: Type.String(),
            kind: Type.String(),
            user: Type.Optional(Type.String()),
            team: Type.Optional(Type.String()),
          }),
        ),
        role: Type.Optional(Type.String()),
        permissions: Type.Array(Type.String()),
        decisions: Type.Array(
          Type.Object({
            permission: Type.String(),
            allowed: Type.Boolean(),
            reason: Reason,
            /** The grants that allow or deny the permission. */
            grants: Type.Array(Type.String()),
          }),
        ),
      }),
    ),
    grants: Type.Array(GrantResponse),
    continuationToken: Type.Optional(Type.String()),
  }),
);
