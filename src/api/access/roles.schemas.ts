import { Type } from 'typebox';
import { component } from '../platform/protocol/components.ts';
import { Maybe } from '../platform/protocol/core.ts';

/** A role as the CLI reads it (sdk/go/common/apitype/roles.go). */
export const RoleResponse = component(
  'RoleResponse',
  Type.Object({
    id: Type.String(),
    orgId: Type.String(),
    name: Type.String(),
    description: Type.String(),
    resourceType: Type.Literal('global'),
    uxPurpose: Type.Literal('role'),
    /** For a built-in role; empty for others. */
    defaultIdentifier: Type.String(),
    details: Type.Object({
      __type: Type.Literal('PermissionDescriptorAllow'),
      permissions: Type.Array(Type.String()),
    }),
    version: Type.Integer(),
    isOrgDefault: Type.Boolean(),
    created: Type.String(),
    modified: Type.String(),
  }),
);

/** The pulumiservice provider reads this form. */
export const RoleScopesResponse = component(
  'RoleScopesResponse',
  Type.Object({
    stack: Type.Array(
      Type.Object({
        name: Type.Literal('Stacks'),
        scopes: Type.Array(Type.Object({ name: Type.String(), metadata: Type.Object({ description: Type.String() }) })),
      }),
    ),
  }),
);

export const RolesQuery = Type.Object({
  /** All roles here have the purpose `role`: the list for any other one is empty. */
  uxPurpose: Type.Optional(Type.String()),
});
export const ListRolesResponse = component('ListRolesResponse', Type.Object({ roles: Type.Array(RoleResponse) }));

/** The details are checked later, to report their faults. */
export const CreateRoleRequest = Type.Object({
  name: Type.String(),
  description: Maybe(Type.String()),
  resourceType: Maybe(Type.String()),
  uxPurpose: Maybe(Type.String()),
  details: Type.Unknown(),
});
export type CreateRoleRequest = Type.Static<typeof CreateRoleRequest>;

/** Missing and null: not changed. */
export const UpdateRoleRequest = Type.Object({
  name: Maybe(Type.String()),
  description: Maybe(Type.String()),
  details: Type.Optional(Type.Unknown()),
});
export type UpdateRoleRequest = Type.Static<typeof UpdateRoleRequest>;

const names = ['read', 'preview', 'write', 'admin', 'decrypt', 'manage', 'outputs'].map((name) =>
  Type.Literal(`stack:${name}`),
);
const Details = Type.Object(
  {
    __type: Type.Literal('PermissionDescriptorAllow'),
    permissions: Type.Array(Type.Union(names), { minItems: 1, maxItems: 100 }),
  },
  { additionalProperties: false },
);
const name = Type.String({ pattern: '^[a-zA-Z0-9][a-zA-Z0-9_.:@ -]{0,99}$' });

/** How the API description shows requests. */
export const DescribedRole = {
  creation: component('CreateRoleRequest', Type.Object({ name, description: Maybe(Type.String()), details: Details })),
  change: component(
    'UpdateRoleRequest',
    Type.Object({ name: Maybe(name), description: Maybe(Type.String()), details: Maybe(Details) }),
    { description: 'For deployments' },
  ),
};

export const RoleParams = Type.Object({ organization: Type.String(), role: Type.String() });
export const RemoveRoleQuery = Type.Object({
  /** Also removes the grants that give the role. */
  force: Type.Optional(Type.String()),
});
export const TeamRoleParams = Type.Object({
  organization: Type.String(),
  team: Type.String(),
  role: Type.String(),
});
