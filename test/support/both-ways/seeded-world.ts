import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { hashToken } from '../../../src/shared/platform/crypto/secret-token.ts';
import { changeStatement } from './changes.ts';
import type { Holder, World } from './world.ts';

/** A world in a database, with the ids that its rows have there and in each copy. */
export interface SeededWorld {
  readonly world: World;
  /** Of the organization, unique. */
  readonly name: string;
  readonly ids: Readonly<Record<'organization' | 'member' | 'stack' | 'other' | 'team', string>>;
  readonly tokens: Readonly<Record<Holder, { readonly id: string; readonly token: string }>>;
  /** One for each step, and for the past. */
  readonly freshIds: readonly string[];
}

/** When the token `brief` expires, in minutes: before a lease would. */
const briefMinutes = 30;

/** Puts the worlds into the database. */
export async function seedWorlds(client: pg.Client, worlds: readonly World[]): Promise<SeededWorld[]> {
  const outsider = randomUUID();
  await insert(client, 'users', [{ id: outsider, login: 'outsider' }]);
  const seeded = worlds.map((world, index) => named(world, `w${index}`));
  const of = <T>(rows: (each: SeededWorld) => readonly T[]): T[] => seeded.flatMap(rows);
  const users = new Map(seeded.map((each) => [each.name, { admin: randomUUID(), viewer: randomUUID(), ...each.ids }]));
  const person = (name: string, role: 'admin' | 'member' | 'viewer'): string => users.get(name)?.[role] as string;
  const roles = ['admin', 'member', 'viewer'] as const;
  await insert(
    client,
    'organizations',
    of(({ ids, name }) => [{ id: ids.organization, name }]),
  );
  await insert(
    client,
    'users',
    of(({ name }) => roles.map((role) => ({ id: person(name, role), login: `${name}-${role}` }))),
  );
  await insert(
    client,
    'memberships',
    of(({ ids, name }) =>
      roles.map((role) => ({ organization_id: ids.organization, user_id: person(name, role), role })),
    ),
  );
  await insert(
    client,
    'teams',
    of(({ ids }) => [{ id: ids.team, organization_id: ids.organization, name: 'blue' }]),
  );
  const projects = new Map(seeded.map(({ name }) => [name, randomUUID()]));
  await insert(
    client,
    'projects',
    of(({ ids, name }) => [{ id: projects.get(name), organization_id: ids.organization, name: 'proj' }]),
  );
  await insert(
    client,
    'stacks',
    of(({ ids, name, world }) =>
      [
        { id: ids.stack, name: 'dev', tags: JSON.stringify(world.tags) },
        { id: ids.other, name: 'other', tags: '{}' },
      ].map((stack) => ({ ...stack, project_id: projects.get(name) })),
    ),
  );
  await insert(
    client,
    'webhooks',
    of(({ ids, world }) =>
      world.hasWebhook
        ? [
            {
              ...{
                id: randomUUID(),
                organization_id: ids.organization,
                name: 'hook',
                display_name: 'hook',
                format: 'raw',
              },
              ...{ url: 'http://127.0.0.1:9/', is_active: true, events: [], event_groups: [] },
            },
          ]
        : [],
    ),
  );
  await insert(
    client,
    'api_tokens',
    of((each) => tokensOf(each, { outsider, ...pick(users, each.name) })),
  );
  await insert(
    client,
    'grants',
    of(({ ids, tokens, world }) =>
      world.grants.map(({ effect, permissions, stack, tag, to }) => ({
        ...{ id: randomUUID(), organization_id: ids.organization, effect, permissions, stack_pattern: stack },
        ...{ tag_name: tag?.[0] ?? null, tag_value: tag?.[1] ?? null },
        user_id: to === 'member' ? ids.member : null,
        team_id: to === 'team' ? ids.team : null,
        token_id: to === 'organization' || to === 'scoped' ? tokens[to].id : null,
      })),
    ),
  );
  for (const { freshIds, ids, tokens, world } of seeded) {
    const { defaultPermissions } = world;
    if (defaultPermissions !== null)
      await client.query('update organization_access set default_permissions = $2 where organization_id = $1', [
        ids.organization,
        defaultPermissions,
      ]);
    for (const name of world.past) {
      const parts = { ...ids, caller: tokens.member.id, fresh: freshIds.at(-1) as string, latest: ids.stack };
      await client.query(changeStatement(name, parts));
    }
  }
  return seeded;
}

function named(world: World, name: string): SeededWorld {
  const [organization, member, stack, other, team] = Array.from({ length: 5 }, () => randomUUID()) as [
    ...[string, string, string, string, string],
  ];
  const token = (holder: Holder) => ({ id: randomUUID(), token: `test-${name}-${holder}-${randomUUID()}` });
  return {
    ...{ world, name, ids: { organization, member, stack, other, team } },
    tokens: {
      ...{ admin: token('admin'), member: token('member'), viewer: token('viewer'), team: token('team') },
      ...{ organization: token('organization'), scoped: token('scoped'), brief: token('brief') },
      ...{ outsider: token('outsider'), revoked: token('revoked') },
    },
    freshIds: Array.from({ length: 2 * world.steps.length + 1 }, () => randomUUID()),
  };
}

function pick(users: ReadonlyMap<string, { admin: string; viewer: string }>, name: string) {
  const { admin, viewer } = users.get(name) as { admin: string; viewer: string };
  return { admin, viewer };
}

function tokensOf(
  { ids, name, tokens }: SeededWorld,
  { admin, outsider, viewer }: { admin: string; outsider: string; viewer: string },
): object[] {
  const personal = (user_id: string) => ({ kind: 'personal', user_id });
  const owned = { organization_id: ids.organization };
  const owners: Record<Holder, object> = {
    admin: personal(admin),
    member: personal(ids.member),
    viewer: personal(viewer),
    team: { ...owned, kind: 'team', team_id: ids.team },
    organization: { ...owned, kind: 'organization', role: 'member' },
    scoped: { ...personal(ids.member), scopes: [{ organization: name, project: null, stack: 'd*', permissions: 7 }] },
    brief: { ...personal(ids.member), expires_at: new Date(Date.now() + briefMinutes * 60_000).toISOString() },
    outsider: personal(outsider),
    revoked: { ...personal(ids.member), revoked_at: new Date().toISOString() },
  };
  const none = {
    user_id: null,
    organization_id: null,
    team_id: null,
    role: null,
    scopes: null,
    expires_at: null,
    revoked_at: null,
  };
  return Object.entries(owners).map(([holder, owner]) => {
    const { id, token } = tokens[holder as Holder];
    return { ...none, ...owner, id, name: `${name}-${holder}`, token_hash: `\\x${hashToken(token).toString('hex')}` };
  });
}

/** All rows have the same columns. */
async function insert(client: pg.Client, table: string, rows: readonly object[]): Promise<void> {
  if (rows.length === 0) return;
  const columns = Object.keys(rows[0] as object).join(', ');
  await client.query(
    `insert into ${table} (${columns}) select ${columns} from jsonb_populate_recordset(null::${table}, $1::jsonb)`,
    [JSON.stringify(rows)],
  );
}
