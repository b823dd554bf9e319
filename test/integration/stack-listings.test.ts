import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { createTestDatabase, type TestDatabase } from '../support/test-app.ts';

let database: TestDatabase;
let client: pg.Client;
beforeAll(async () => {
  database = await createTestDatabase();
  client = await connect();
  await client.query(`insert into organizations (name) values ('one'), ('two')`);
  await client.query(
    `insert into projects (organization_id, name) select id, p from organizations, unnest('{p,q}'::text[]) p`,
  );
});
afterAll(async () => {
  await client.end();
  await database[Symbol.asyncDispose]();
});

async function connect(): Promise<pg.Client> {
  const connection = new pg.Client({ connectionString: database.ownerUrl });
  await connection.connect();
  return connection;
}

/** Unless an update `u` has ended without having started. */
const hasBegun = '(u.started_at is not null or u.ended_at is null)';

/** The listings that are wrong: missing, left over or different. */
async function differences(): Promise<unknown[]> {
  const { rows } = await client.query(`
    with wanted as (
      select p.organization_id, t.key as tag_name, p.name as project_name, s.name as stack_name, t.value as tag_value, s.id as stack_id
      from stacks s join projects p on p.id = s.project_id
      cross join lateral (select '' as key, '' as value union all select * from json_each_text(s.tags::json)) t
      where s.deleted_at is null),
    found as (select organization_id, tag_name, project_name, stack_name, tag_value, stack_id from stack_listings)
    (table wanted except table found) union all (table found except table wanted)`);
  const changes = await client.query(`
    with wanted as (
      select s.id, p.organization_id, p.name, s.name, (
        select case when u.status in ('failed', 'cancelled') then u.status end from updates u
        where u.stack_id = s.id and u.kind <> 'preview' and ${hasBegun} order by u.number desc limit 1)
      from stacks s join projects p on p.id = s.project_id where s.deleted_at is null),
    found as (select stack_id, organization_id, project_name, stack_name, trouble from stack_changes)
    (table wanted except table found) union all (table found except table wanted)`);
  const last = await client.query(`
    with wanted as (
      select s.id, c.resource_count, u.kind, u.status, coalesce(u.started_at, u.created_at)
      from stacks s left join checkpoints c on c.id = s.checkpoint_id left join lateral (
        select * from updates u where u.stack_id = s.id and u.kind <> 'preview' and ${hasBegun} order by u.number desc limit 1) u on true
      where s.active_update_id is null and s.deleted_at is null),
    found as (select id, resource_count, last_kind, last_status, last_started_at from stacks where active_update_id is null and deleted_at is null)
    (table wanted except table found) union all (table found except table wanted)`);
  return [...rows, ...changes.rows, ...last.rows];
}

test('the listings follow every change of the stacks', async () => {
  const project = (at: number): string => `(select id from projects order by id offset ${at % 4} limit 1)`;
  const tags = (at: number): string =>
    JSON.stringify(
      Object.fromEntries(['a', 'b', 'c'].filter((_, bit) => (at >> bit) % 2).map((name) => [name, String(at % 3)])),
    );
  const changed = new Map<string, number>();
  let state = 7;
  const random = (): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) / 2 ** 24;
  };
  for (let step = 0; step < 300; step++) {
    const [name, other] = [`s${Math.floor(random() * 3)}`, `s${Math.floor(random() * 3)}`];
    const live = `project_id = ${project(Math.floor(random() * 4))} and name = '${name}' and deleted_at is null`;
    const target = `${project(step >> 1)}`;
    const status = ['succeeded', 'failed', 'cancelled'][step % 3] as string;
    const add = (kind: string, as: string): string =>
      `insert into updates (stack_id, kind, exclusive, status, expires_at, started_at)
       select id, '${kind}', ${kind === 'update'}, '${as}', now(), case when ${step} % 3 <> 0 then now() end
       from stacks where ${live} and active_update_id is null returning id, stack_id`;
    const changes = {
      insert: `insert into stacks (project_id, name, tags) values (${project(step)}, '${name}', '${tags(step)}') on conflict do nothing`,
      tag: `update stacks set tags = '${tags(step)}' where ${live}`,
      rename: `update stacks set name = '${other}', project_id = ${target} where ${live} and not exists (
        select 1 from stacks o where o.project_id = ${target} and o.name = '${other}' and o.deleted_at is null)`,
      hide: `update stacks set deleted_at = now() where ${live}`,
      delete: `delete from stacks where ${live}`,
      purge: `delete from stacks where deleted_at is not null`,
      begin: `with u as (${add('update', 'running')}) update stacks s set active_update_id = u.id from u where s.id = u.stack_id`,
      end: `select end_locked_update(u.id, u.stack_id, case when u.started_at is null then 'cancelled' else '${status}' end, null, false, null, null)
        from updates u join stacks s on s.active_update_id = u.id where ${live}`,
      copy: add('update', status),
      write: `with c as (
          insert into checkpoints (stack_id, sha256, size_bytes, stored_bytes, codec, resource_count, inline_bytes)
          select id, '', 1, 1, 'zstd', ${step}, '' from stacks where ${live} returning id, stack_id)
        update stacks s set checkpoint_id = c.id from c where s.id = c.stack_id`,
      preview: add('preview', 'failed'),
      other: `update stacks set stack_version = stack_version + 1, tags = tags where ${live}`,
    };
    const kinds = Object.keys(changes) as (keyof typeof changes)[];
    // Twice as many insertions as anything else.
    const kind = kinds[Math.max(0, Math.floor(random() * (kinds.length + 1)) - 1)] as keyof typeof changes;
    const { rowCount } = await client.query(changes[kind]);
    changed.set(kind, (changed.get(kind) ?? 0) + (rowCount ?? 0));
    if (step % 10 === 9) expect(await differences()).toEqual([]);
  }
  for (const kind of [
    'insert',
    'tag',
    'rename',
    'hide',
    'delete',
    'purge',
    'other',
    'begin',
    'end',
    'copy',
    'write',
    'preview',
  ])
    expect({ kind, rows: (changed.get(kind) ?? 0) > 3 }).toEqual({ kind, rows: true });
});

test('tags that are no JSON hide no stack and stop no write', async () => {
  await client.query(
    `insert into stacks (project_id, name, tags) select id, 'odd', '{"a":"\\u0000' from projects limit 1`,
  );
  const { rows } = await client.query(`select tag_name from stack_listings where stack_name = 'odd'`);
  expect(rows).toEqual([{ tag_name: '' }]);
  await client.query(`delete from stacks where name = 'odd'`);
  expect(await differences()).toEqual([]);
});
