import { Type } from 'typebox';
import { allowedBy, deniedBy, type Grantable, namesOf, permissions } from '../../../shared/access/permissions.ts';
import type { OrganizationApi } from '../organization-api.ts';
import {
  canonicalText,
  changesPerCall,
  type Kind,
  type PresentObject,
  part,
  type Reference,
  type Spec,
  sorted,
} from './kind.ts';

const closed = { additionalProperties: false } as const;
const Logins = Type.Array(Type.String({ minLength: 1 }), { maxItems: 10_000 });

interface TeamResponse {
  readonly name: string;
  readonly displayName: string;
  readonly description: string;
  readonly members: readonly { readonly githubLogin: string; readonly role: string }[];
}

export const teamKind: Kind = {
  kind: 'Team',
  description: 'A team; its name is metadata.name',
  spec: Type.Object(
    {
      displayName: Type.Optional(Type.String({ minLength: 1 })),
      description: Type.Optional(Type.String()),
      members: Type.Optional({ ...Logins, description: 'Logins; if omitted, members stay as they are' }),
      admins: Type.Optional({ ...Logins, description: 'Logins of members who administer the team' }),
    },
    closed,
  ),
  complete: ({ admins, members, ...spec }) => {
    const split = splitMembers(members as string[] | undefined, admins as string[] | undefined);
    return {
      ...spec,
      ...(members === undefined ? {} : { members: split.members }),
      ...(admins === undefined ? {} : { admins: split.admins }),
    };
  },
  keyOf: (name) => name,
  references: ({ admins = [], members = [] }) =>
    Object.entries({ members, admins }).flatMap(([field, logins]) =>
      (logins as string[]).map((name): Reference => ({ kind: 'Member', name, path: [field] })),
    ),
  withoutMembers: (spec, logins) => {
    const left = (['members', 'admins'] as const).flatMap((field) => {
      const names = spec[field] as string[] | undefined;
      return names ? [[field, names.filter((name) => !logins.has(name))]] : [];
    });
    return { ...spec, ...Object.fromEntries(left) };
  },
  list: async (api) =>
    (await api.get('teams')).json.teams.map(
      (team: TeamResponse): PresentObject => ({ object: team.name, name: team.name, spec: teamSpec(team) }),
    ),
  read: async (api, object) => {
    const response = await api.find(`teams/${part(object)}`);
    return response && { spec: teamSpec(response.json), tags: { team: response.etag } };
  },
  create: async (api, name, spec) => {
    const { description, displayName } = spec;
    await api.post('teams/pulumi', { name, displayName, description });
    await setMembers(api, name, { members: [], admins: [] }, spec);
    return name;
  },
  change: async (api, { fields, from, object, tags, to }) => {
    const { description, displayName } = to;
    if (fields.some((field) => field === 'displayName' || field === 'description'))
      await api.patch(
        `teams/${part(object)}`,
        { newDisplayName: displayName, newDescription: description },
        tags['team'],
      );
    if (fields.some((field) => field === 'members' || field === 'admins')) await setMembers(api, object, from, to);
    return object;
  },
  remove: async (api, object, tags) => void (await api.delete(`teams/${part(object)}`, tags['team'])),
};

/** Separates members who are not admins from admins. */
function splitMembers(members: readonly string[] = [], admins: readonly string[] = []) {
  return { members: sorted(members.filter((login) => !admins.includes(login))), admins: sorted(admins) };
}

function teamSpec({ description, displayName, members }: TeamResponse): Spec {
  const loginsOf = (role: string) => members.filter((each) => each.role === role).map((each) => each.githubLogin);
  return { displayName, description, ...splitMembers(loginsOf('member'), loginsOf('admin')) };
}

async function setMembers(api: OrganizationApi, team: string, from: Spec, to: Spec): Promise<void> {
  const roles = ({ admins, members }: Spec) =>
    new Map([
      ...((members as string[] | undefined) ?? []).map((login) => [login, 'member'] as const),
      ...((admins as string[] | undefined) ?? []).map((login) => [login, 'admin'] as const),
    ]);
  const [before, after] = [roles(from), roles(to)];
  const memberChanges: { member: string; memberAction: string }[] = [];
  const change = (member: string, memberAction: string) => memberChanges.push({ member, memberAction });
  for (const [login, role] of after) {
    const old = before.get(login);
    if (old === role) continue;
    if (old === undefined) change(login, 'add');
    if (role === 'admin') change(login, 'promote');
    else if (old === 'admin') change(login, 'demote');
  }
  // An omitted list is not changed.
  for (const [login, role] of before)
    if (!after.has(login) && to[role === 'admin' ? 'admins' : 'members'] !== undefined) change(login, 'remove');
  for (let at = 0; at < memberChanges.length; at += changesPerCall)
    await api.patch(`teams/${part(team)}`, { memberChanges: memberChanges.slice(at, at + changesPerCall) });
}

interface GrantResponse {
  readonly id: string;
  readonly effect: 'allow' | 'deny';
  readonly permissions: readonly string[];
  readonly role?: { readonly name: string };
  readonly stacks: string;
  readonly tag?: { readonly name: string; readonly value?: string };
  readonly user?: string;
  readonly team?: string;
  readonly token?: { readonly id: string; readonly name: string };
}

export const grantKind: Kind = {
  kind: 'Grant',
  description: 'Allows or denies permissions on stacks to one team, user or token: give permissions or a role',
  spec: Type.Object(
    {
      effect: Type.Optional(Type.Enum(['allow', 'deny'])),
      team: Type.Optional(Type.String()),
      user: Type.Optional(Type.String({ description: 'Login' })),
      token: Type.Optional(Type.String({ description: 'Id' })),
      role: Type.Optional(Type.String({ description: 'Name' })),
      permissions: Type.Optional(Type.Array(Type.Enum([...permissions]), { minItems: 1 })),
      stacks: Type.Optional(Type.String({ description: 'project/stack, with * for any characters; default */*' })),
      tag: Type.Optional(Type.Object({ name: Type.String(), value: Type.Optional(Type.String()) }, closed)),
    },
    closed,
  ),
  complete: ({ effect = 'allow', permissions: names, role, stacks = '*/*', tag, team, token, user }) => ({
    effect,
    ...(team === undefined ? {} : { team }),
    ...(user === undefined ? {} : { user }),
    ...(token === undefined ? {} : { token }),
    ...(role === undefined
      ? { permissions: granted(effect as string, names as string[] | undefined) }
      : { role: (role as string).toLowerCase() }),
    stacks,
    tag: tag ?? null,
  }),
  keyOf: (_name, spec) => canonicalText(spec),
  references: ({ role, team, user }) => [
    ...(team === undefined ? [] : [{ kind: 'Team' as const, name: team as string, path: ['team'] }]),
    ...(user === undefined ? [] : [{ kind: 'Member' as const, name: user as string, path: ['user'] }]),
    ...(role === undefined ? [] : [{ kind: 'Role' as const, name: role as string, path: ['role'] }]),
  ],
  withoutMembers: () => null,
  list: async (api) => {
    const grants: GrantResponse[] = await api.list('grants', 'grants');
    return grants.map((grant) => ({ object: grant.id, name: grantName(grant), spec: grantSpec(grant) }));
  },
  // A grant never changes: repeating the removal of a removed grant fails as not found.
  read: async () => ({ spec: {}, tags: {} }),
  create: async (api, _name, spec) => (await api.post('grants', await grantBody(api, spec))).json.id,
  // The new grant comes first, so that there is no moment without the permissions that both allow, or without the denials of both.
  change: async (api, { name, object, to }) => {
    const id = await grantKind.create(api, name, to);
    await api.delete(`grants/${part(object)}`);
    return id;
  },
  remove: async (api, object) => void (await api.delete(`grants/${part(object)}`)),
  changeTogether: async (api, changes) => {
    const added: object[] = [];
    for (const { wanted } of changes) if (wanted) added.push(await grantBody(api, wanted));
    const removed = changes.flatMap(({ present }) => (present ? [present.object] : []));
    const { json } = await api.patch('grants', { add: added, remove: removed });
    const ids: string[] = json.added.map(({ id }: GrantResponse) => id);
    return changes.map(({ wanted }) => (wanted ? (ids.shift() ?? null) : null));
  },
};

async function grantBody(api: OrganizationApi, { role, tag, ...spec }: Spec): Promise<object> {
  const roleId = role === undefined ? {} : { role: await api.roleId(role as string) };
  return { ...spec, ...roleId, ...(tag === null ? {} : { tag }) };
}

function granted(effect: string, names: readonly string[] = []): string[] {
  const set = (effect === 'deny' ? deniedBy : allowedBy)(names as Grantable[]);
  return sorted(namesOf(set));
}

function grantSpec({ effect, permissions: names, role, stacks, tag, team, token, user }: GrantResponse): Spec {
  return {
    effect,
    ...(team === undefined ? {} : { team }),
    ...(user === undefined ? {} : { user }),
    ...(token === undefined ? {} : { token: token.id }),
    ...(role === undefined ? { permissions: sorted(names) } : { role: role.name.toLowerCase() }),
    stacks,
    tag: tag ?? null,
  };
}

function grantName({ effect, permissions: names, role, stacks, team, token, user }: GrantResponse): string {
  const what = role?.name ?? (effect === 'deny' ? 'deny' : (names.at(-1) ?? ''));
  return [team ?? user ?? token?.name ?? '', what, stacks === '*/*' ? '' : stacks]
    .filter((each) => each !== '')
    .join('-');
}
