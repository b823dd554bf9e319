import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import type { Queryable } from '../../src/shared/platform/db/sql.ts';
import { createAuditExportRepository } from '../../src/workers/audit/audit-export-repository.ts';
import { createDeletedStackRepository } from '../../src/workers/stacks/deleted-stack-repository.ts';
import { createEmptyProjectRepository } from '../../src/workers/stacks/empty-project-repository.ts';
import { explainingPool } from '../../testkit/query-plan.ts';
import { analyzeExactly } from '../support/exact-statistics.ts';
import { planOf } from '../support/plan-of.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-app.ts';

// What years leave behind is not read again.

let database: TestDatabase;
let client: pg.Client;
beforeAll(async () => {
  database = await createTestDatabase();
  client = new pg.Client({ connectionString: database.ownerUrl });
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await database[Symbol.asyncDispose]();
});

/** Runs SQL without triggers and foreign keys. */
async function seed(...statements: readonly string[]): Promise<void> {
  await client.query('set session_replication_role = replica');
  for (const statement of statements) await client.query(statement);
  await client.query('set session_replication_role = origin');
}

/** The rows of a table that the work reads in one transaction, which is rolled back; those of triggers and foreign keys too. */
async function rowsReadOf(table: string, work: (db: Queryable) => Promise<unknown>): Promise<number> {
  const { pool } = explainingPool(client);
  await client.query('begin');
  await work(pool as Queryable);
  const { rows } = await client.query<{ read: number }>(
    'select (seq_tup_read + idx_tup_fetch)::float8 as read from pg_stat_xact_user_tables where relname = $1',
    [table],
  );
  await client.query('rollback');
  return rows[0]?.read ?? 0;
}

test('chunks of other stacks are not read when a stack is deleted', async () => {
  const id = crypto.randomUUID();
  await seed(
    `insert into version_chunks (stack_id, depth, sha256, size_bytes, stored_bytes, codec, inline_bytes)
     select ('00000000-0000-0000-0000-' || lpad((n / 100)::text, 12, '0'))::uuid, 0, sha256(n::text::bytea), 1, 1, 'zstd', ''
     from generate_series(1, 20000) n`,
    `insert into stacks (id, project_id, name, deleted_at) values ('${id}', gen_random_uuid(), 'deleted', now())`,
  );
  await analyzeExactly(client, 'version_chunks');
  const read = await rowsReadOf('version_chunks', async (db) => {
    const rows = createDeletedStackRepository(db);
    await rows.lock(id);
    await rows.deleteChunks(id, 200);
  });
  expect(read).toBe(0);
});

test('deleting empty projects does not read the stacks of others', async () => {
  await client.query(`insert into organizations (name) values ('of-projects')`);
  await client.query(
    `insert into projects (organization_id, name, may_be_empty) select id, 'p' || n, n > 10 from organizations, generate_series(1, 60) n`,
  );
  await seed(
    `insert into stacks (project_id, name, deleted_at) select p.id, 's' || n, case when n % 10 = 0 then now() end
     from projects p, generate_series(1, 1000) n where not p.may_be_empty`,
  );
  await analyzeExactly(client, 'stacks', 'projects');
  const { rows } = await client.query<{ id: string }>('select id from projects where may_be_empty');
  const read = await rowsReadOf('stacks', (db) =>
    createEmptyProjectRepository(db).delete(rows.map((row) => row.id)),
  );
  expect(read).toBe(0);
});

test('the export of the audit log reads the batches that are to be exported', async () => {
  await client.query(`with chains as (
      insert into audit_chains (organization_id, batch, hash, base_hash, exported_batch, sent_batch)
      select ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, 1000, '', '', 1000 - (n = 50)::int, 1000 - (n = 50)::int
      from generate_series(1, 100) n returning organization_id)
    insert into audit_batches (organization_id, batch, month, through_number, numbers, event_hashes, previous_hash, hash)
    select organization_id, n, '2026-01-01', n, '{}', '', '', '' from chains, generate_series(1, 1000) n`);
  await analyzeExactly(client, 'audit_chains', 'audit_batches');
  for (const target of ['blobs', 'receiver'] as const) {
    const plan = await planOf(client, (db) =>
      createAuditExportRepository(db).listUnexported(target, { limit: 50 }),
    );
    expect(plan.returned).toBe(1);
    expect(plan.read).toBeLessThanOrEqual(150);
    const earlier = await planOf(client, (db) =>
      createAuditExportRepository(db).hasUnexportedBefore(target, '2026-01-01'),
    );
    expect(earlier.read).toBeLessThanOrEqual(150);
  }
});
