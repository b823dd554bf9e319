import { Type } from 'typebox';
import { decryptsByRole, withDecryptByRole } from '../../../shared/access/decrypt-by-role.ts';
import {
  allowedBy,
  permissions as allPermissions,
  type Grantable,
  namesOf,
} from '../../../shared/access/permissions.ts';
import { rolePermissions } from '../../../shared/access/roles.ts';
import { CallRefusedError, ConfigurationError } from '../configuration-error.ts';
import type { OrganizationApi } from '../organization-api.ts';
import { type Kind, type PresentObject, part, type Spec, sorted } from './kind.ts';

const closed = { additionalProperties: false } as const;
const permissions = [...allPermissions];

/** Permissions with all permissions that they need, as the server stores them. */
function withNeeded(names: readonly string[]): string[] {
  return sorted(namesOf(allowedBy(names as Grantable[])));
}

export const organizationKind: Kind = {
  kind: 'Organization',
  description: 'An organization with its settings, which site admins create; its name is metadata.name',
  spec: Type.Object(
    {
      decryptByRole: Type.Optional(
        Type.Boolean({ description: 'Whether viewers and members may decrypt secrets by role' }),
      ),
      defaultPermissions: Type.Optional(
        Type.Union([Type.Array(Type.Enum(permissions)), Type.Null()], {
          description: 'Maximum permissions of roles below admin; null: all of the role; empty: only grants apply',
        }),
      ),
    },
    closed,
  ),
  complete: completePolicy,
  keyOf: (name) => name,
  list: async (api) => {
    const seen = await organizationKind.read(api, api.organization);
    return seen
      ? [{ object: api.organization, name: api.organization, spec: seen.spec, fixed: 'it is an organization' }]
      : [];
  },
  read: async (api) => {
    const response = await api.find('access-policy');
    if (!response) return null;
    const { decryptByRole, defaultPermissions: given } = response.json;
    return {
      spec: { decryptByRole, defaultPermissions: given === null ? null : sorted(given) },
      tags: { policy: response.etag },
    };
  },
  create: async (api, name, spec) => {
    await createOrganization(api, name);
    if (Object.keys(spec).length > 0) await api.patch('access-policy', spec);
    return name;
  },
  change: async (api, { object, tags, to }) => {
    await api.patch('access-policy', to, tags['policy']);
    return object;
  },
  remove: async ({ operator }, object) => void (await operator.delete(`organizations/${part(object)}`)),
};

async function createOrganization({ operator, organization }: OrganizationApi, name: string): Promise<void> {
  try {
    await operator.post('organizations', { name });
  } catch (error) {
    if (error instanceof CallRefusedError && error.status === 403)
      throw new ConfigurationError(
        `There is no organization ${organization}, or the token does not administer it. Site admins create one`,
      );
    if (error instanceof CallRefusedError && error.status === 409)
      throw new ConfigurationError(`Organization ${organization} exists, but the token does not administer it`);
    throw error;
  }
}

/** The policy as the server stores it: a limit with all permissions of a member is no limit. */
function completePolicy(spec: Spec): Spec {
  const names = spec['defaultPermissions'] as Grantable[] | null | undefined;
  if (names === undefined) return spec;
  const given = names === null ? rolePermissions.member : allowedBy(names);
  const limit = (given & rolePermissions.member) === rolePermissions.member ? null : given;
  const { decryptByRole } = spec;
  const defaults = typeof decryptByRole === 'boolean' ? withDecryptByRole(limit, decryptByRole) : limit;
  return {
    decryptByRole: decryptsByRole(defaults),
    defaultPermissions: defaults === null ? null : sorted(namesOf(defaults)),
  };
}

interface Member {
  readonly role: string;
  readonly user: { readonly githubLogin: string };
}

async function findInvitation(api: OrganizationApi, login: string): Promise<{ role: string } | undefined> {
  const { json } = await api.get('invitations');
  return json.invitations.find((each: { login: string }) => each.login === login);
}

export const memberKind: Kind = {
  kind: 'Member',
  description: 'A member of the organization, or a user who is invited; the login is metadata.name',
  spec: Type.Object({ role: Type.Enum(['viewer', 'member', 'admin']) }, closed),
  complete: (spec) => spec,
  keyOf: (name) => name,
  list: async (api) => {
    const members: Member[] = await api.list('members', 'members');
    const { json } = await api.get('invitations');
    const invited: { login: string; role: string }[] = json.invitations;
    return [
      ...members.map(({ role, user }) => ({ login: user.githubLogin, role })),
      ...invited.map(({ login, role }) => ({ login, role, isInvited: true as const })),
    ].map(({ login, role, ...rest }): PresentObject => ({ object: login, name: login, spec: { role }, ...rest }));
  },
  read: async (api, object) => {
    const found = (await memberKind.list(api)).find((each) => each.object === object);
    return found ? { spec: found.spec, tags: {} } : null;
  },
  create: async (api, name, { role }) => {
    await api.post('invitations', { login: name, role });
    return name;
  },
  change: async (api, { object, to: { role } }) => {
    if (await findInvitation(api, object)) await api.post('invitations', { login: object, role });
    else await api.patch(`members/${part(object)}`, { role });
    return object;
  },
  remove: async (api, object) => {
    const isInvited = (await findInvitation(api, object)) !== undefined;
    await api.delete(`${isInvited ? 'invitations' : 'members'}/${part(object)}`);
  },
};

interface RoleResponse {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly defaultIdentifier: string;
  readonly details: { readonly permissions: readonly string[] };
}

const prefix = 'stack:';
const roleDetails = (names: unknown) => ({
  __type: 'PermissionDescriptorAllow',
  permissions: (names as string[]).map((name) => `${prefix}${name}`),
});

export const roleKind: Kind = {
  kind: 'Role',
  description: 'A named set of permissions that grants give',
  spec: Type.Object(
    {
      description: Type.Optional(Type.String()),
      permissions: Type.Array(Type.Enum(permissions), {
        minItems: 1,
        description: 'With all that they need: write includes preview and read',
      }),
    },
    closed,
  ),
  complete: (spec) => ({ ...spec, permissions: withNeeded(spec['permissions'] as string[]) }),
  keyOf: (name) => name.toLowerCase(),
  list: async (api) =>
    (await api.get('roles')).json.roles
      .filter((role: RoleResponse) => role.defaultIdentifier === '')
      .map((role: RoleResponse): PresentObject => ({ object: role.id, name: role.name, spec: roleSpec(role) })),
  read: async (api, object) => {
    const response = await api.find(`roles/${part(object)}`);
    return response && { spec: roleSpec(response.json), tags: { role: response.etag } };
  },
  create: async (api, name, spec) => {
    const { json } = await api.post('roles', { name, ...roleBody(spec) });
    api.forgetRoles();
    return json.id;
  },
  change: async (api, { object, tags, to }) => {
    await api.patch(`roles/${part(object)}`, roleBody(to), tags['role']);
    return object;
  },
  remove: async (api, object, tags) => {
    await api.delete(`roles/${part(object)}`, tags['role']);
    api.forgetRoles();
  },
};

function roleBody({ description, permissions: names }: Spec) {
  return { ...(description === undefined ? {} : { description }), details: roleDetails(names) };
}

function roleSpec({ description, details }: RoleResponse): Spec {
  return { description, permissions: sorted(details.permissions.map((name) => name.slice(prefix.length))) };
}
