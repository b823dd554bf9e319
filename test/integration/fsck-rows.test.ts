import { randomUUID } from 'node:crypto';
import { beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { type FindingKind, type FsckReport, findingKinds } from '../../src/cli/fsck/finding.ts';
import { fsck } from '../../src/cli/fsck/fsck.ts';
import { FsckRun } from '../../src/cli/fsck/fsck-run.ts';
import { checkTable } from '../../src/cli/fsck/row-checks.ts';
import type { rowKinds } from '../../src/cli/fsck/row-kinds.ts';
import { projectDayChecks } from '../../src/cli/fsck/tables/project-day-check-repository.ts';
import { stackChecks } from '../../src/cli/fsck/tables/stack-check-repository.ts';
import {
  createTableCheckRepository,
  idTypes,
  type TableCheck,
} from '../../src/cli/fsck/tables/table-check-repository.ts';
import { updateChecks } from '../../src/cli/fsck/tables/update-check-repository.ts';
import { createStorageRepository } from '../../src/shared/access/quotas/storage-repository.ts';
import { sql as typed } from '../../src/shared/platform/db/sql.ts';
import { insertEvents, pack, sampleEvent } from '../support/archived-events.ts';
import { chainAll } from '../support/chain-all.ts';
import { query } from '../support/database.ts';
import { encodeAll, importVersions, makeDue } from '../support/encode-versions.ts';
import { creation } from '../support/journal-entries.ts';
import { keyRingOf } from '../support/key-ring.ts';
import { PolicyCalls, smallArchive } from '../support/policy-packs.ts';
import { createStack, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { stackId } from '../support/state-index.ts';
import { masterKeys, testApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, complete } from '../support/update-calls.ts';
import { createHook } from '../support/webhooks.ts';

// All damages of rows are made at once: exactly these are found, and a second run after the repairs is clean.

const app = testApp({ settings: { HOLDFAST_DELETED_STACK_DAYS: '7' } });
const ring = keyRingOf(masterKeys);
const sql = (text: string, values: readonly unknown[] = []) => query(app, text, values);
const run = (fixes: boolean): Promise<FsckReport> => fsck(app.context, { fixes, sample: 0, ring });

/** Changes rows as a restore does that has switched triggers and foreign keys off. */
const unchecked = (text: string) => sql(`begin; set local session_replication_role = replica; ${text}; commit`);

let stack: TestStack;
let idle: TestStack;
let running: RunningUpdate;
let ended: RunningUpdate;
let id: string;
let idleId: string;
let gone: string;

beforeAll(async () => {
  stack = await createStack(app);
  id = await stackId(app, stack);
  await importVersions(app, stack, 4);
  await makeDue(app, stack);
  await encodeAll(app);
  await ok(app.call('POST', `${stack.path}/encrypt`, { auth: stack.auth, body: { plaintext: 'YQ==' } }));
  await createHook(app, stack, 'stack', { payloadUrl: 'https://hooks.example.com/x' });
  await new PolicyCalls(app, stack).publish({ archive: smallArchive });
  ended = await startUpdate(app, stack, { journal: true });
  await ok(append(app, ended, creation(1, 'saved', stack)));
  await ok(complete(app, ended));
  const events = Array.from({ length: 20 }, (_, at) => sampleEvent(at));
  await insertEvents(app, ended.id, events);
  await pack(app, ended.id);
  await app.context.statistics.keep(ended.id);
  await sql(`update updates set events_archived = true where id = $1`, [ended.id]);
  idle = await createStack(app);
  idleId = await stackId(app, idle);
  const removed = await createStack(app);
  gone = await stackId(app, removed);
  await ok(app.call('DELETE', removed.path, { auth: removed.auth }));
  await sql(
    `insert into grants (organization_id, effect, permissions, built_in_role, user_id)
     select m.organization_id, 'allow', 1, 'viewer', m.user_id from memberships m join organizations o on o.id = m.organization_id
     where o.name = $1`,
    [stack.organization],
  );
  // No day counts updates that ended elsewhere.
  await sql(
    `with copied as (
       insert into updates (stack_id, kind, dry_run, exclusive, status, expires_at, started_at, ended_at, events_archived)
       values ($1, 'preview', true, false, 'succeeded', now(), now(), now(), true) returning id)
     insert into imported_previews select $1, 'entry', id from copied`,
    [id],
  );
  running = await startUpdate(app, stack, { journal: true });
  await ok(append(app, running, creation(1, 'running', stack)));
  const [organization] = await sql('select id from organizations where name = $1', [idle.organization]);
  await createStorageRepository(app.context.db).measure(String(organization?.['id']));
  await sql(`update stack_changes set changed_at = now() - interval '1 day' where stack_id = $1`, [idleId]);
  await chainAll(app);
});

interface Damage {
  readonly make: () => Promise<unknown>;
  readonly object: RegExp;
  /** Undoes what is left alone. */
  readonly undo?: () => Promise<unknown>;
}

const updateOf = (name: 'ended' | 'first' | 'second' | 'third') =>
  name === 'ended'
    ? `id = '${ended.id}'`
    : `stack_id = '${id}' and stack_version = ${{ first: 1, second: 2, third: 3 }[name]}`;
const copy = randomUUID();
const ghost = randomUUID();
const hold = randomUUID();
const future = `now() + interval '3 days'`;

const damages: Readonly<Record<keyof typeof rowKinds, Damage | null>> = {
  schema: {
    make: () => sql('alter table grants disable trigger grants_updated'),
    object: /^trigger grants_updated of grants$/,
    undo: () => sql('alter table grants enable trigger grants_updated'),
  },
  'foreign-key': {
    make: () => unchecked(`insert into output_losses values ('${ghost}', '[]')`),
    object: /^output_losses_update_id_fkey$/,
    undo: () => sql('delete from output_losses where update_id = $1', [ghost]),
  },
  sequence: {
    make: () => sql(`select setval('webhook_deliveries_number_seq', 1, false)`),
    object: /^webhook_deliveries_number_seq$/,
  },
  'deleted-stack': {
    make: () => sql(`update stacks set deleted_by = 'nobody' where id = $1`, [idleId]),
    object: /org.*\/proj\/dev$/,
    undo: () => sql('update stacks set deleted_by = null where id = $1', [idleId]),
  },
  hold: {
    make: () =>
      unchecked(`update stacks set held_at = now(), held_by = 'x', hold_reason = 'y', restorable_until = null, restorable_in = null
        where id = '${gone}'`),
    object: /org.*\/proj\/dev$/,
  },
  pin: {
    make: () =>
      sql(
        `update updates set pinned_by = 'ada', state_deleted_at = now(), checkpoint_id = null where ${updateOf('first')}`,
      ),
    object: /^update /,
  },
  'retention-mark': {
    make: () => sql(`update updates set state_deleted_at = now() where ${updateOf('second')}`),
    object: /^update /,
  },
  'retention-progress': {
    make: () => sql('insert into stack_retention values ($1, now(), 1000000000)', [id]),
    object: /^stack /,
  },
  'former-name': {
    make: () =>
      sql(`insert into former_stack_names select $1, o.id, 'proj', 'former' from organizations o where o.name = $2`, [
        id,
        idle.organization,
      ]),
    object: /org.*\/proj\/dev$/,
  },
  'day-counter': {
    make: () =>
      sql('update stack_days set runs = runs + 2, run_ms = 1, changed = changed + 3 where stack_id = $1', [id]),
    object: /org.*\/proj\/dev$/,
  },
  'project-counter': {
    make: () =>
      sql(
        `with o as (select id from organizations where name = $1),
           d as (insert into project_day_delivery_changes (organization_id, day, project_name, kind, seconds, count)
             select id, current_date, 'proj', 'lead', 60, 3 from o)
         insert into project_day_changes (organization_id, day, project_name, runs, failed, cancelled, previews, failed_previews, waits, run_ms,
           waited_ms, longest_ms, left_ms)
         select id, current_date, 'proj', 3, 1, 0, 0, 0, 0, 9, 0, 99000000, 0 from o`,
        [stack.organization],
      ),
    object: /^org.*\/proj$/,
  },
  'stack-counter': {
    make: () =>
      sql(
        'insert into stack_counts (organization_id, stacks, event_bytes) select id, 2, 9 from organizations where name = $1',
        [stack.organization],
      ),
    object: /^org/,
  },
  storage: {
    make: () => sql('update organization_storage set event_bytes = event_bytes + 2000'),
    object: /^org/,
  },
  lease: {
    make: () => sql(`update updates set must_end_at = expires_at - interval '1 second' where id = $1`, [running.id]),
    object: /^update /,
  },
  'update-end': {
    make: () => sql(`update updates set ended_at = null where ${updateOf('third')}`),
    object: /^update /,
  },
  'sequence-head': {
    make: () => sql('update updates set full_committed = full_assigned + 3 where id = $1', [running.id]),
    object: /^update /,
  },
  statistics: {
    make: () => sql('update update_statistics set is_success = not is_success, seconds = 9999, created_at = null'),
    object: /^update /,
  },
  'limit-counter': {
    make: () => sql('insert into update_limits (update_id, changes) values ($1, 7)', [ended.id]),
    object: /^update /,
  },
  'event-rows': {
    make: () => insertEvents(app, ended.id, [sampleEvent(100)]),
    object: /^update /,
  },
  'segment-overlap': {
    make: () =>
      sql(`insert into event_segments (id, update_id, first_sequence, last_sequence, event_count, frames, sha256, size_bytes, stored_bytes,
          codec, inline_bytes)
        select '${copy}', update_id, first_sequence, last_sequence + 1, event_count, frames, sha256, size_bytes, stored_bytes, codec,
          inline_bytes from event_segments limit 1`),
    object: /^update /,
    undo: () => sql('delete from event_segments where id = $1', [copy]),
  },
  'journal-missing': {
    make: () => sql(`insert into journal_entries select id, 1, '{}' from updates where ${updateOf('second')}`),
    object: /^update /,
    undo: () =>
      sql(`delete from journal_entries where update_id in (select id from updates where ${updateOf('second')})`),
  },
  'snapshot-left': {
    make: () =>
      sql(`insert into journal_snapshots (update_id, entries, sha256, size_bytes, codec, inline_bytes)
        select id, 1, '\\x00', 1, 'zstd', '\\x00' from updates where ${updateOf('third')}`),
    object: /^update /,
  },
  chunks: {
    make: () =>
      sql(`update checkpoint_chunks set place = place + 1000
        where checkpoint_id = (select checkpoint_id from updates where ${updateOf('third')})`),
    object: /^state .* of stack /,
    undo: () =>
      sql(`update checkpoint_chunks set place = place - 1000
        where checkpoint_id = (select checkpoint_id from updates where ${updateOf('third')})`),
  },
  'chunk-base': {
    make: () =>
      sql(
        'update version_chunks set depth = -1 where id = (select max(id) from version_chunks where base_id is not null)',
      ),
    object: /^chunk \d+ of stack /,
    undo: () =>
      sql(
        'update version_chunks p set depth = b.depth + 1 from version_chunks b where b.id = p.base_id and p.depth = -1',
      ),
  },
  'chunk-unswept': {
    make: () =>
      sql(
        `insert into version_chunks (stack_id, depth, sha256, size_bytes, stored_bytes, codec, inline_bytes)
         values ($1, 0, '\\x00', 1, 1, 'zstd', '\\x00')`,
        [idleId],
      ),
    object: /^chunk \d+ of stack /,
  },
  'secret-reads': {
    make: () =>
      sql(
        `insert into audit_secret_reads values ($1, $2, 'org/proj/dev', '{"actor":"server","signIn":""}', 1, 1, '{password}')`,
        [ended.id, stack.organization],
      ),
    object: /^org\/proj\/dev, update /,
  },
  'organization-rows': {
    make: () =>
      sql(
        'delete from policy_groups where is_default and organization_id = (select id from organizations where name = $1)',
        [idle.organization],
      ),
    object: /^org/,
  },
  'pack-version': { make: () => sql('update policy_packs set last_version = 0'), object: /^org.*\/pack$/ },
  'policy-group': {
    make: () =>
      sql(`with pack as (insert into policy_packs (organization_id, name) select organization_id, 'other' from policy_packs returning *)
        insert into policy_group_packs (group_id, pack_id, version_id)
        select g.id, k.id, v.id from pack k join policy_groups g on g.organization_id = k.organization_id and g.is_default,
          policy_pack_versions v`),
    object: /^org.*\/other$/,
    undo: () => sql(`delete from policy_packs where name = 'other'`),
  },
  'grant-role': {
    make: () => unchecked(`update grants set permissions = 63 where built_in_role = 'viewer'`),
    object: /^grant /,
  },
  'token-policy': {
    make: () =>
      sql(
        `update api_tokens set policy_id = gen_random_uuid() where user_id in (
          select m.user_id from memberships m join organizations o on o.id = m.organization_id where o.name = $1)`,
        [idle.organization],
      ),
    object: /^token /,
  },
  'key-unknown': {
    make: () => sql(`update encryption_keys set master_key_id = master_key_id || '-gone' where stack_id = $1`, [id]),
    object: /^stack .*-gone$/,
    undo: () => sql(`update encryption_keys set master_key_id = replace(master_key_id, '-gone', '')`),
  },
  'blob-doomed': {
    make: () =>
      sql(`with doomed as (insert into blobs (key, pending_deletion_since, delete_at) values ('checkpoints/doomed', now(), now()) returning key)
        insert into journal_snapshots (update_id, entries, sha256, size_bytes, codec, blob_key)
        select '${running.id}', 1, '\\x00', 1, 'zstd', key from doomed`),
    object: /^checkpoints\/doomed$/,
    undo: () => sql(`delete from journal_snapshots where blob_key is not null`),
  },
  'blob-hold': {
    make: () => sql(`insert into blob_holds values ('${hold}', ${future}, ${future})`),
    object: /^hold /,
  },
  'copy-queue': {
    make: () =>
      sql(`insert into blob_copies_due (key, is_deletion, bytes, try_at) values ('audit/x', false, 1, ${future})`),
    object: /^audit\/x$/,
    undo: () => sql('delete from blob_copies_due'),
  },
  'copy-idle': { make: async () => {}, object: /^1 objects$/ },
  'copy-missing': null,
  'copy-differs': null,
  'bundle-queue': {
    make: () =>
      sql(`insert into bundled_stacks (organization, project, stack, stack_id, stack_version, changed_at, tags)
        select '${stack.organization}', 'proj', 'dev', c.stack_id, 1, c.changed_at, '{}' from stack_changes c where c.stack_id = '${id}'`),
    object: /\/proj\/dev$/,
  },
  claim: {
    make: () =>
      sql(
        `insert into state_index_due (stack_id, claim, claimed_until) values ($1, gen_random_uuid(), ${future})
        on conflict (stack_id) do update set claimed_until = excluded.claimed_until`,
        [idleId],
      ),
    object: /^stack /,
  },
  orphan: {
    make: () =>
      sql(`insert into stack_days (organization_id, day, stack_id) values ('${ghost}', current_date, '${ghost}')`),
    object: /^rows of stack_days of organization /,
  },
};

/** Findings that damages lead to beside their own: of objects, documents, keys and searches. */
const others: readonly FindingKind[] = ['blob-missing', 'data-key', 'index-behind', 'index-wrong', 'document-damaged'];

const found = ({ findings }: FsckReport) =>
  findings.filter(({ kind }) => !others.includes(kind)).map(({ kind, object, isFixed }) => ({ kind, object, isFixed }));

test('sums of sound projects are compared by one statement, however many there are', async () => {
  const [check] = projectDayChecks;
  expect(await createTableCheckRepository(app.context.db).page(check as TableCheck)(null, 1)).toEqual([]);
});

test('every kind of finding about rows has its damage; exactly these are found, the safe ones repaired, and then nothing is left', async () => {
  expect(found(await run(false))).toEqual([]);
  const all = Object.entries(damages).flatMap(([kind, damage]) =>
    damage ? [{ kind: kind as FindingKind, ...damage }] : [],
  );
  for (const { make } of all) await make();
  const expected = (isRepaired: boolean) =>
    all
      .map(({ kind, object }) => ({
        kind,
        object: expect.stringMatching(object),
        isFixed: isRepaired && findingKinds[kind].repair !== null,
      }))
      .sort((a, b) => (a.kind < b.kind ? -1 : 1));
  const sorted = (report: FsckReport) => found(report).sort((a, b) => (a.kind < b.kind ? -1 : 1));
  expect(sorted(await run(false))).toEqual(expected(false));
  expect(sorted(await run(true))).toEqual(expected(true));
  for (const { undo } of all) await undo?.();
  expect(found(await run(true))).toEqual([]);
  expect((await run(false)).findings).toEqual([]);
  const [day] = await sql('select runs, longest_ms, changed from stack_days where stack_id = $1', [id]);
  expect(day).toMatchObject({ runs: 1, changed: 0 });
  expect(
    await sql('select 1 from policy_groups where is_default and organization_id in (select id from organizations)'),
  ).toHaveLength(3);
});

const repair = async (check: TableCheck | undefined): Promise<FsckReport> => {
  if (!check) throw new Error('there is no such check');
  const fixing = new FsckRun(app.context, { fixes: true, sample: 0, ring: null });
  await checkTable(fixing, check);
  return fixing.report;
};

test('the hold of a deleted stack stays as long as it keeps anything', async () => {
  const removed = await createStack(app);
  const held = await stackId(app, removed);
  await ok(app.call('DELETE', removed.path, { auth: removed.auth }));
  await unchecked(`update stacks set held_at = now(), held_by = 'x', hold_reason = 'y', restorable_until = null, restorable_in = null
    where id = '${held}'`);
  const data = {
    updates: `(stack_id, kind, dry_run, exclusive, status, expires_at, ended_at, events_archived)
      values ($1, 'preview', true, false, 'succeeded', now(), now(), true)`,
    checkpoints: `(stack_id, sha256, size_bytes, stored_bytes, codec, inline_bytes, resource_count)
      values ($1, '', 0, 0, 'none', '', 0)`,
    update_approvals: `(stack_id, kind, commit_id, asked_by, request, approved_at, approved_by, reason, expires_at)
      values ($1, 'change-limit', 'c', 'ada', '', now(), 'bob', 'x', now())`,
    encryption_keys: `(stack_id, master_key_id, wrapped_key) values ($1, 'x', '')`,
  };
  const isFixed = async (): Promise<boolean | undefined> =>
    (await repair(stackChecks[0])).findings.find(({ kind }) => kind === 'hold')?.isFixed;
  for (const [table, row] of Object.entries(data)) {
    await sql(`insert into ${table} ${row}`, [held]);
    expect([table, await isFixed()]).toEqual([table, false]);
    await sql(`delete from ${table} where stack_id = $1`, [held]);
  }
  expect(await isFixed()).toBe(true);
});

test('a row that new ones push off its page is not taken for repaired', async () => {
  await sql('create table paged as select 2 * n::bigint as id from generate_series(1, 500) n');
  try {
    const { findings } = await repair({
      name: 'paged',
      from: typed.fragment`paged p`,
      id: typed.fragment`p.id`,
      idType: idTypes.bigint,
      object: typed.fragment`'row ' || p.id`,
      problems: [
        {
          kind: 'orphan',
          when: typed.fragment`p.id = 1000`,
          repair: () => [typed.fragment`insert into paged values (1)`],
        },
      ],
    });
    expect(findings).toEqual([{ kind: 'orphan', object: 'row 1000', detail: null, isFixed: false }]);
  } finally {
    await sql('drop table paged');
  }
});

test('repairs of counters keep what the transaction that they wait for has counted', async () => {
  const client = new pg.Client({ connectionString: app.database.ownerUrl });
  await client.connect();
  const repairDuring = async (work: string, check: TableCheck | undefined): Promise<void> => {
    await client.query(`begin; ${work}`);
    const repairing = repair(check);
    await until(async () => {
      const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
      return (await sql(waiting)).length > 0;
    }, 'the repair waits');
    await client.query('commit');
    expect((await repairing).findings).toMatchObject([{ isFixed: true }]);
  };
  try {
    await sql(`insert into update_limits (update_id) values ($1) on conflict do nothing`, [ended.id]);
    await sql('update update_limits set changes = 7 where update_id = $1', [ended.id]);
    await repairDuring(
      `insert into update_limit_changes values ('${ended.id}', 'changed');
       update update_limits set changes = changes + 1 where update_id = '${ended.id}'`,
      updateChecks.find(({ problems }) => problems.some(({ kind }) => kind === 'limit-counter')),
    );
    expect(await sql('select changes from update_limits where update_id = $1', [ended.id])).toEqual([{ changes: 1 }]);
    const [before] = await sql('update stack_days set runs = runs + 2 where stack_id = $1 returning previews', [id]);
    await repairDuring(
      `update stack_days set previews = previews + 1 where stack_id = '${id}'`,
      stackChecks.find(({ problems }) => problems.some(({ kind }) => kind === 'day-counter')),
    );
    const [after] = await sql('select runs, previews from stack_days where stack_id = $1', [id]);
    expect(after).toEqual({ runs: 1, previews: Number(before?.['previews']) + 1 });
  } finally {
    await client.end();
  }
});

/** Tables without a foreign key: the kinds of findings about them, or why nothing is checked. The check of foreign keys covers the others. */
const withoutForeignKey: Readonly<Record<string, FindingKind | `none: ${string}`>> = {
  audit_batches: 'audit',
  audit_chaining: 'audit',
  audit_chains: 'audit',
  audit_events: 'audit',
  audit_secret_reads: 'secret-reads',
  audit_sending: 'none: failures since the last success',
  blob_copies_due: 'copy-queue',
  blob_holds: 'blob-hold',
  blob_places: 'blob-missing',
  blobs: 'blob-unswept',
  bundled_stacks: 'bundle-queue',
  bundles: 'none: a setting; the worker compares it with the location',
  exchanged_id_tokens: 'none: expires, and outlives its issuer',
  failed_lookups: 'none: counters of minutes',
  holdfast_migrations: 'none: compared at each start',
  installation: 'none: single values, which the servers watch',
  job_admissions: 'none: expires in hours',
  job_results: 'none: expires in a day',
  left_bundled_stacks: 'none: the files there say whether they are these',
  maintenance_runs: 'none: claims in the future count as none',
  master_keys: 'master-key',
  organizations: 'organization-rows',
  processes: 'none: expires in an hour',
  project_day_changes: 'project-counter',
  project_day_deliveries: 'project-counter',
  project_day_delivery_changes: 'project-counter',
  project_days: 'project-counter',
  rate_counters: 'none: counters of minutes',
  refused_runs: 'orphan',
  sign_in_attempts: 'none: expires in a day',
  sign_in_flows: 'none: expires in minutes',
  sign_in_paces: 'none: expires in a day',
  stack_changes: 'change-listing',
  stack_counts: 'stack-counter',
  stack_days: 'day-counter',
  stack_listings: 'listing',
  state_index_due: 'claim',
  update_approvals: 'approval',
  update_queue_processes: 'none: alive for seconds',
};

test('every table has foreign keys or a check, or a reason to have none', async () => {
  const tables = await sql(
    `select c.relname as name from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
       and not c.relispartition and not exists (
         select 1 from pg_constraint k where k.conrelid = c.oid and k.contype = 'f')
     order by 1`,
  );
  expect(Object.keys(withoutForeignKey)).toEqual(expect.arrayContaining(tables.map(({ name }) => name)));
});
