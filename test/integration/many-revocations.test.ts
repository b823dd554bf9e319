import { expect, test } from '@jest/globals';
import pg from 'pg';
import { query } from '../support/database.ts';
import { createStack, startUpdate } from '../support/state.ts';
import { type TestApp, testApp } from '../support/test-app.ts';
import { saveState } from '../support/update-calls.ts';

const app = testApp();
const people = 2_000;
/** Locks that a transaction may take for all users together. The lock table of Postgres holds a few thousand for everybody. */
const maxLocks = 1_100;

/** Makes an organization with many members who each have a token. Returns its id. */
async function createCrowd(name: string): Promise<string> {
  const [row] = await query<{ id: string }>(
    app,
    `with organization as (insert into organizations (name) values ($1) returning id),
       crowd as (insert into users (login) select $1 || '-' || i from generate_series(1, $2::integer) i returning id),
       members as (insert into memberships (organization_id, user_id, role) select o.id, c.id, 'member' from organization o, crowd c),
       tokens as (
         insert into api_tokens (user_id, token_hash, created_at)
         select id, sha256(convert_to(id::text, 'UTF8')), now() - interval '10 days' from crowd)
     select id from organization`,
    [name, people],
  );
  return row?.id as string;
}

/** Runs the statement in a transaction. Returns how many advisory locks that held at its end. */
async function countLocks(on: TestApp, text: string, values: readonly unknown[]): Promise<number> {
  const client = new pg.Client({ connectionString: on.database.ownerUrl });
  await client.connect();
  try {
    await client.query('begin');
    await client.query(text, [...values]);
    const { rows } = await client.query<{ count: number }>(
      `select count(*)::integer as count from pg_locks where pid = pg_backend_pid() and locktype = 'advisory'`,
    );
    await client.query('commit');
    return rows[0]?.count ?? 0;
  } finally {
    await client.end();
  }
}

const ways: Record<string, string> = {
  'a policy on the life of tokens': 'update organization_access set max_token_seconds = 60 where organization_id = $1',
  'their tokens':
    'update api_tokens set revoked_at = now() where user_id in (select user_id from memberships where organization_id = $1)',
  'their membership': 'delete from memberships where organization_id = $1',
  deactivation:
    'update users set deactivated_at = now() where id in (select user_id from memberships where organization_id = $1)',
  'deletion of the users': 'delete from users where id in (select user_id from memberships where organization_id = $1)',
};

test.each(Object.entries(ways))(
  'ending the rights of thousands by %s takes a bounded number of locks',
  async (way, statement) => {
    const organization = await createCrowd(`crowd-${way.replaceAll(' ', '-')}`);
    expect(await countLocks(app, statement, [organization])).toBeLessThanOrEqual(maxLocks);
    const [left] = await query<{ count: number }>(
      app,
      `select count(*)::integer as count from api_tokens t join memberships m on m.user_id = t.user_id join users u on u.id = t.user_id
     where m.organization_id = $1 and t.revoked_at is null and u.deactivated_at is null and (t.expires_at is null or t.expires_at > now())`,
      [organization],
    );
    expect(left?.count).toBe(0);
  },
);

test('a change of a user does not wait for users with another lock key', async () => {
  const stack = await createStack(app);
  const update = await startUpdate(app, stack);
  const client = new pg.Client({ connectionString: app.database.ownerUrl });
  await client.connect();
  try {
    await client.query('begin');
    await client.query(
      `select lock_exclusive(lpad(to_hex(i), 32, '0')::uuid) from generate_series(0, 1023) i
       where lpad(to_hex(i), 32, '0')::uuid <> (
         select place_of_user(t.user_id) from api_tokens t join updates u on u.token_id = t.id where u.id = $1)`,
      [update.id],
    );
    expect((await saveState(app, update, 1)).status).toBe(204);
    expect((await app.call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body: { a: 'b' } })).status).toBe(204);
  } finally {
    await client.end();
  }
});
