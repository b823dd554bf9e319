import { readFileSync } from 'node:fs';
import { Type } from 'typebox';
import { Value } from 'typebox/value';
import { Role, roles } from '../../../shared/access/roles.ts';
import { ConfigError } from '../../../shared/platform/config/config.ts';

const GroupMapping = Type.Array(
  Type.Object(
    {
      group: Type.String({ minLength: 1 }),
      organization: Type.String({ minLength: 1 }),
      role: Type.Optional(Role),
      teams: Type.Optional(Type.Array(Type.String({ minLength: 1 }))),
    },
    { additionalProperties: false },
  ),
);
/** Each entry gives a role in an organization (default: member), and memberships in its teams. */
export type GroupMapping = Type.Static<typeof GroupMapping>;

/** Role and teams in one organization. */
export interface MappedAccess {
  readonly role: Role;
  readonly teams: readonly string[];
}

/** Throws ConfigError. */
export function readGroupMapping(file: string): GroupMapping {
  const setting = 'HOLDFAST_OIDC_GROUPS_FILE';
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new ConfigError(`${setting}: ${file} cannot be read as JSON`, { cause: error });
  }
  const [issue] = Value.Errors(GroupMapping, content);
  if (issue) throw new ConfigError(`${setting}: ${file}: ${issue.instancePath || '/'} ${issue.message}`);
  return content as GroupMapping;
}

/** Access by organization: the strongest role, and all teams. */
export function mapGroups(mapping: GroupMapping, groups: readonly string[]): ReadonlyMap<string, MappedAccess> {
  const access = new Map<string, MappedAccess>();
  for (const { group, organization, role = 'member', teams = [] } of mapping) {
    if (!groups.includes(group)) continue;
    const before = access.get(organization);
    access.set(organization, {
      role: before && roles.indexOf(before.role) > roles.indexOf(role) ? before.role : role,
      teams: [...new Set([...(before?.teams ?? []), ...teams])],
    });
  }
  return access;
}
