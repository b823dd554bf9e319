import { type Static, Type } from 'typebox';
import { component } from '../platform/protocol/components.ts';

const login = Type.String({ pattern: '^[a-zA-Z0-9][a-zA-Z0-9_.@-]{0,99}$' });
const name = Type.String({ pattern: '^[a-zA-Z0-9]([a-zA-Z0-9_-]{0,38}[a-zA-Z0-9])?$' });
const page = { continuationToken: Type.Optional(Type.String()) };

export const PageQuery = Type.Object(page);
export const OrganizationParams = Type.Object({ name: Type.String() });
export const UserParams = Type.Object({ login: Type.String() });

export const OrganizationResponse = component(
  'OperatorOrganization',
  Type.Object({ name: Type.String(), created: Type.String() }),
  { name: 'acme', created: '2026-11-28T12:00:00.000Z' },
);
export const ListOrganizationsResponse = component(
  'ListOrganizationsResponse',
  Type.Object({ organizations: Type.Array(OrganizationResponse), ...page }),
);

export const CreateOrganizationRequest = component(
  'CreateOrganization',
  Type.Object({
    name,
    admin: Type.Optional(Type.String({ ...login, description: 'Its first admin; by default the user of the token' })),
  }),
  { name: 'acme', admin: 'ada' },
);
export type CreateOrganizationRequest = Static<typeof CreateOrganizationRequest>;

const Limit = Type.Union([Type.Integer({ minimum: 0, maximum: 999_999_999_999_999 }), Type.Null()], {
  description: 'Null: the limit in the settings; 0: no limit',
});
const limits = {
  stacks: Limit,
  keptBytes: Limit,
  inFlightBytes: Limit,
  updates: Limit,
  requestsPerSecond: Limit,
};
const example = { stacks: 500, keptBytes: 50_000_000_000, inFlightBytes: null, updates: 0, requestsPerSecond: null };

export const QuotaResponse = component('Quota', Type.Object(limits), example);
export const SetQuotaRequest = component('SetQuota', Type.Partial(Type.Object(limits)), example);
export type SetQuotaRequest = Static<typeof SetQuotaRequest>;

export const UserResponse = component(
  'OperatorUser',
  Type.Object({
    login: Type.String(),
    displayName: Type.String(),
    email: Type.String(),
    siteAdmin: Type.Boolean(),
    active: Type.Boolean(),
    organizations: Type.Array(Type.String()),
  }),
  {
    ...{ login: 'ada', displayName: 'Ada', email: 'ada@example.com' },
    ...{ siteAdmin: false, active: true, organizations: ['acme'] },
  },
);
export const ListUsersResponse = component(
  'ListUsersResponse',
  Type.Object({ users: Type.Array(UserResponse), ...page }),
);

export const CreateUserRequest = component(
  'CreateUser',
  Type.Object({ login, siteAdmin: Type.Optional(Type.Boolean()) }),
  { login: 'ada', siteAdmin: false },
);
export type CreateUserRequest = Static<typeof CreateUserRequest>;

export const ChangeUserRequest = component(
  'ChangeUser',
  Type.Object({ siteAdmin: Type.Optional(Type.Boolean()), active: Type.Optional(Type.Boolean()) }),
  { active: false },
);
export type ChangeUserRequest = Static<typeof ChangeUserRequest>;
