import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { createQuotaRepository } from '../../src/shared/access/quotas/quota-repository.ts';
import { createArchivingRepository } from '../../src/shared/events/archiving-repository.ts';
import { createEventSegmentRepository } from '../../src/shared/events/event-segment-repository.ts';
import { createJobAdmissionRepository } from '../../src/shared/jobs/job-admission-repository.ts';
import type { Queryable } from '../../src/shared/platform/db/sql.ts';
import { createFormerVersionsRepository } from '../../src/shared/search/former-versions-repository.ts';
import { createStackRepository } from '../../src/shared/stacks/stack-repository.ts';
import { createDocumentCheckRepository } from '../../src/shared/state/checkpoints/document-check-repository.ts';
import { createCompactionRepository } from '../../src/shared/state/journal/compaction-repository.ts';
import { createJournalSnapshotRepository } from '../../src/shared/state/journal/journal-snapshot-repository.ts';
import { createUpdateRuleRepository } from '../../src/shared/updates/rules/update-rule-repository.ts';
import { createUpdateRepository } from '../../src/shared/updates/update-repository.ts';
import { analyzeExactly } from '../support/exact-statistics.ts';
import { planOf } from '../support/plan-of.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-app.ts';

let database: TestDatabase;
let client: pg.Client;
let organization: string;
let lease: Buffer;

/**
 * Twenty organizations with 100 stacks each. Every stack has an update that runs, with a journal, and one that has just ended, whose
 * journal is kept.
 */
beforeAll(async () => {
  database = await createTestDatabase();
  client = new pg.Client({ connectionString: database.ownerUrl });
  await client.connect();
  await client.query(`insert into organizations (name) select 'org-' || n from generate_series(1, 20) n`);
  await client.query(`insert into projects (organization_id, name) select id, 'project' from organizations`);
  await client.query(
    `insert into stacks (project_id, name) select id, 'stack-' || n from projects, generate_series(1, 100) n`,
  );
  await client.query(`insert into updates (stack_id, kind, exclusive, status, expires_at, lease_hash)
    select id, 'update', true, 'running', now() + interval '1 hour', sha256(id::text::bytea) from stacks`);
  await client.query(`insert into journals (update_id, stack_id) select id, stack_id from updates`);
  await client.query(`insert into updates (stack_id, kind, exclusive, status, expires_at, ended_at)
    select id, 'update', true, 'succeeded', now(), now() from stacks`);
  await client.query(`insert into journals (update_id, stack_id, ended_at, compacted_at)
    select id, stack_id, ended_at, now() from updates where status = 'succeeded'`);
  await client.query(`insert into job_admissions (id, job, expires_at)
    select gen_random_uuid(), '{}', now() + interval '1 hour' from generate_series(1, 2000)`);
  await client.query(`insert into checkpoints (stack_id, update_id, sha256, size_bytes, stored_bytes, codec, resource_count, inline_bytes)
    select stack_id, id, '', 1, 1, 'none', 0, '' from updates`);
  await client.query(`insert into checkpoints (stack_id, sha256, size_bytes, stored_bytes, codec, resource_count, inline_bytes)
    select id, '', 1, 1, 'none', 0, '' from stacks`);
  await client.query(`insert into journal_snapshots (update_id, entries, size_bytes, codec, inline_bytes, sha256)
    select id, 1, 1, 'none', '', '' from updates`);
  await client.query(`insert into event_segments (update_id, first_sequence, last_sequence, event_count, frames, sha256, size_bytes,
      stored_bytes, codec, inline_bytes) select id, 0, 0, 1, '[]', '', 1, 1, 'none', '' from updates`);
  await client.query('insert into state_indexes (stack_id, version, known_from) select id, 1, 0 from stacks');
  await analyzeExactly(client);
  const { rows } = await client.query<{ organization: string; lease: Buffer }>(
    `select organization_id as organization, lease_hash as lease from updates where status = 'running' limit 1`,
  );
  ({ organization, lease } = rows[0] as { organization: string; lease: Buffer });
});
afterAll(async () => {
  await client.end();
  await database[Symbol.asyncDispose]();
});

describe('a sweep that finds nothing reads nothing', () => {
  test.each<[string, (db: Queryable) => Promise<unknown>]>([
    [
      'journals to compact, among those of running updates',
      (db) => createCompactionRepository(db).claimUncompacted(10),
    ],
    [
      'journals to delete, among those in their grace period',
      (db) => createCompactionRepository(db).listKeptLongerThan(3600, 100),
    ],
    [
      'updates to pack, among those that ended within the delay',
      (db) => createArchivingRepository(db).listDue(3600, null, 100),
    ],
    ['expired admissions', (db) => createJobAdmissionRepository(db).deleteExpired(3600)],
    ['versions from before their index', (db) => createFormerVersionsRepository(db).findFillable(null)],
    ['a wrong lease', (db) => createUpdateRepository(db).isLease(Buffer.alloc(32))],
  ])('%s', async (_, work) => {
    const plan = await planOf(client, work);
    expect(plan).toMatchObject({ read: 0 });
    expect(plan.pages).toBeLessThanOrEqual(8);
  });
});

test('only journals of ended updates are read to find those to compact', async () => {
  await client.query(
    `update updates set status = 'failed', ended_at = now() where id in (
    select id from updates where status = 'running' and organization_id = $1 limit 5)`,
    [organization],
  );
  const plan = await planOf(client, (db) => createCompactionRepository(db).claimUncompacted(10));
  expect(plan.returned).toBe(5);
  // The journal, its stack, and the journal again for the claim.
  expect(plan.read).toBeLessThanOrEqual(4 * 5);
});

describe('what an organization has is counted without the others', () => {
  test('updates', async () => {
    const plan = await planOf(client, (db) => createQuotaRepository(db).countUpdates(organization));
    // The update, and the few organizations.
    expect(plan.read).toBeLessThanOrEqual(100 + 20);
    expect(plan.pages).toBeLessThanOrEqual(100);
  });

  test('stacks, in the index alone', async () => {
    const plan = await planOf(client, (db) => createQuotaRepository(db).countStacks(organization));
    expect(plan.read).toBeLessThanOrEqual(100 + 20);
    expect(plan.pages).toBeLessThanOrEqual(100);
  });
});

test('a stack without rules is read with them at the cost of one search', async () => {
  const ref = { organization: 'org-1', project: 'project', stack: 'stack-7' };
  const alone = await planOf(client, (db) => createStackRepository(db).find(ref));
  const withRules = await planOf(client, (db) => createUpdateRuleRepository(db).findStack(ref));
  expect(withRules).toMatchObject({ read: alone.read, returned: 1 });
  expect(withRules.pages).toBeLessThanOrEqual(alone.pages + 2);
});

describe('what a stack has is listed without the others', () => {
  let stack: string;
  let updates: string[];
  beforeAll(async () => {
    const { rows } = await client.query<{ stack: string; updates: string[] }>(
      'select stack_id as stack, array_agg(id::text) as updates from updates group by stack_id limit 1',
    );
    ({ stack, updates } = rows[0] as { stack: string; updates: string[] });
  });

  test.each<[string, (db: Queryable) => Promise<unknown>]>([
    ['updates', (db) => createDocumentCheckRepository(db).listUpdates(stack, 0, 500)],
    ['checkpoints', (db) => createDocumentCheckRepository(db).listOfUpdates(updates)],
    ['its first state', (db) => createDocumentCheckRepository(db).listFirst(stack)],
    ['journal snapshots', (db) => createJournalSnapshotRepository(db).listOfUpdates(updates)],
    ['segments of events', (db) => createEventSegmentRepository(db).listOfUpdates(updates)],
  ])('%s', async (_, work) => {
    const plan = await planOf(client, work);
    expect(plan.returned).toBeGreaterThan(0);
    expect(plan.read).toBeLessThanOrEqual(3);
    expect(plan.pages).toBeLessThanOrEqual(12);
  });
});

test('a right lease is found in the index', async () => {
  const plan = await planOf(client, (db) => createUpdateRepository(db).isLease(lease));
  expect(plan.read).toBeLessThanOrEqual(1);
});
