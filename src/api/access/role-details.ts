import { parsePermissions } from '../../shared/access/grants.ts';
import { allowedBy, type Grantable, grantable, namesOf, type PermissionSet } from '../../shared/access/permissions.ts';
import { InvalidRequestError } from '../../shared/platform/errors/errors.ts';

const descriptor = 'PermissionDescriptorAllow';
const prefix = 'stack:';
const members = ['__type', 'permissions'];

/** The form that the CLI sends and shows. */
export interface RoleDetails {
  readonly __type: typeof descriptor;
  /** Names without the prefix `stack:`. */
  readonly permissions: readonly string[];
}

const descriptions: Readonly<Record<Grantable, string>> = {
  read: 'See the stack: state, history, events and tags',
  preview: 'Run previews',
  write: 'Create, update, destroy, import, cancel, rename and tag',
  admin: 'Delete the stack',
  decrypt: 'Read secrets',
  manage: 'Change tags that grants use, and see who has access',
  outputs: 'Read the outputs and nothing else',
};

/** The weakest permission comes first. */
export const roleScopes = grantable.map((name) => ({
  name: prefix + name,
  metadata: { description: descriptions[name] },
}));

const roleNamePattern = '^[a-zA-Z0-9][a-zA-Z0-9_.:@ -]{0,99}$';

export function isRoleName(name: string): boolean {
  return new RegExp(roleNamePattern).test(name);
}

/**
 * Accepts one set of permissions. Conditions, other kinds of descriptors, and permissions of Pulumi Cloud that are narrower or wider than
 * ours are rejected: a similar permission would give too much or too little. Throws InvalidRequestError.
 */
export function parseRoleDetails(details: unknown): PermissionSet {
  const form = `{"__type": "${descriptor}", "permissions": ["stack:read", …]}`;
  if (typeof details !== 'object' || details === null || Array.isArray(details))
    throw new InvalidRequestError(`The details of a role must have the form ${form}`);
  const { __type: type, permissions } = details as Record<string, unknown>;
  if (type !== descriptor)
    throw new InvalidRequestError(
      `This server has no ${quoted(type)} in roles. A role is one set of permissions, ${form}; grants define the stacks it applies to (POST /api/orgs/ORG/grants)`,
    );
  const other = Object.keys(details).find((name) => !members.includes(name));
  if (other !== undefined)
    throw new InvalidRequestError(
      `This server has no ${quoted(other)} in the details of a role: they must have the form ${form}`,
    );
  if (!Array.isArray(permissions) || permissions.length === 0 || permissions.some((name) => typeof name !== 'string'))
    throw new InvalidRequestError(`The details of a role must list its permissions: ${form}`);
  const names = (permissions as string[]).map((name) => (name.startsWith(prefix) ? name.slice(prefix.length) : name));
  const unknown = names.findIndex((name) => !(grantable as readonly string[]).includes(name));
  if (unknown >= 0)
    throw new InvalidRequestError(
      `This server has no permission ${quoted(permissions[unknown])}. It has ${grantable.map((name) => prefix + name).join(', ')}`,
    );
  return allowedBy(parsePermissions(names));
}

export function writeRoleDetails(permissions: PermissionSet): RoleDetails {
  return { __type: descriptor, permissions: namesOf(permissions).map((name) => prefix + name) };
}

function quoted(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value.slice(0, 60)) : 'permissions of this kind';
}
