import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { hashToken } from '../../../src/shared/platform/crypto/secret-token.ts';

/** With the ids that its rows have in the database and in each copy. */
export interface SeededFixture {
  /** Of the organization, unique. */
  readonly name: string;
  readonly ids: Readonly<Record<'organization' | 'project' | 'stack' | 'admin' | 'member', string>>;
  readonly tokens: Readonly<Record<Holder, { readonly id: string; readonly token: string }>>;
}

type Holder = 'admin' | 'member';
const holders: readonly Holder[] = ['admin', 'member'];

export async function seedFixtures(client: pg.Client, count: number): Promise<SeededFixture[]> {
  const fixtures = Array.from({ length: count }, (_, index) => named(`w${index}`));
  const of = (rows: (fixture: SeededFixture) => readonly object[]): object[] => fixtures.flatMap(rows);
  await insert(
    client,
    'organizations',
    of(({ ids, name }) => [{ id: ids.organization, name }]),
  );
  await insert(
    client,
    'users',
    of(({ ids, name }) => holders.map((role) => ({ id: ids[role], login: `${name}-${role}` }))),
  );
  await insert(
    client,
    'memberships',
    of(({ ids }) => holders.map((role) => ({ organization_id: ids.organization, user_id: ids[role], role }))),
  );
  await insert(
    client,
    'projects',
    of(({ ids }) => [{ id: ids.project, organization_id: ids.organization, name: 'proj' }]),
  );
  await insert(
    client,
    'stacks',
    of(({ ids }) => [{ id: ids.stack, project_id: ids.project, name: 'dev', tags: '{}' }]),
  );
  await insert(
    client,
    'webhooks',
    of(({ ids }) => [
      {
        ...{ id: randomUUID(), organization_id: ids.organization, name: 'hook', display_name: 'hook', format: 'raw' },
        ...{ url: 'http://127.0.0.1:9/', is_active: true, events: [], event_groups: [] },
      },
    ]),
  );
  await insert(
    client,
    'api_tokens',
    of(({ ids, name, tokens }) =>
      holders.map((holder) => ({
        ...{ id: tokens[holder].id, kind: 'personal', user_id: ids[holder], name: `${name}-${holder}` },
        token_hash: `\\x${hashToken(tokens[holder].token).toString('hex')}`,
      })),
    ),
  );
  return fixtures;
}

function named(name: string): SeededFixture {
  const id = () => randomUUID();
  const token = (holder: Holder) => ({ id: id(), token: `test-${name}-${holder}-${id()}` });
  return {
    name,
    ids: { organization: id(), project: id(), stack: id(), admin: id(), member: id() },
    tokens: { admin: token('admin'), member: token('member') },
  };
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
