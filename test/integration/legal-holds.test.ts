import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { glob, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createBackgroundTaskRepository } from '../../src/shared/platform/background-tasks/background-task-repository.ts';
import { createMetrics } from '../../src/shared/platform/telemetry/metrics.ts';
import { listBackgroundTasks } from '../../src/workers/background-tasks.ts';
import { insertEndedUpdate, pack, sampleEvent } from '../support/archived-events.ts';
import { query } from '../support/database.ts';
import { encodeAll, importVersions } from '../support/encode-versions.ts';
import { createStack, ok, type TestStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';
import { setRule } from '../support/update-rules.ts';

// A legal hold keeps versions, events, previews, secrets and approvals, whichever task runs and whatever is old.

const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-holds-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const app = testApp({
  settings: {
    ...{ HOLDFAST_INLINE_BYTES: '250', HOLDFAST_SECOND_STORE: path.join(folder, 'second') },
    ...{ HOLDFAST_DELETED_STACK_DAYS: '0', HOLDFAST_BLOB_RETENTION_SECONDS: '1', blobGraceSeconds: 1 },
  },
});

/** Tables with rows of stacks that a hold keeps. */
const kept = [
  ...['stacks', 'updates', 'checkpoints', 'checkpoint_chunks', 'version_chunks', 'event_segments', 'encryption_keys'],
  'update_approvals',
];

const ofAudit = 'The audit log has a retention of its own';
const copies = 'It says what is in the bundle';
const journal = 'The state of the version contains it once the update has ended';
const withTheirs = 'They go with the row of their update or stack only';
const index = 'It is derived from states';
const statistics = 'Only statistics';
const settings = 'What a stack is set to, not what it was';

/** The others, and why a hold does not keep what is in them. */
const others: Readonly<Record<string, string>> = {
  audit_events: ofAudit,
  audit_secret_reads: ofAudit,
  bundled_stacks: copies,
  left_bundled_stacks: copies,
  engine_events: 'They move to segments',
  journals: journal,
  journal_entries: journal,
  journal_snapshots: journal,
  imported_previews: withTheirs,
  imported_versions: withTheirs,
  output_losses: withTheirs,
  update_statistics: withTheirs,
  update_limits: withTheirs,
  update_limit_changes: withTheirs,
  state_indexes: index,
  state_index_due: index,
  stack_resources: index,
  resource_changes: index,
  version_changes: index,
  stack_listings: 'Only stacks that are not deleted are listed',
  stack_changes: 'Only stacks that are not deleted are listed',
  stack_days: statistics,
  stack_storage: statistics,
  refused_runs: statistics,
  drift_runs: settings,
  embeds: settings,
  grants: settings,
  policy_group_stacks: settings,
  stack_retention: settings,
  webhooks: settings,
  former_stack_names: settings,
  webhook_events: 'Messages are sent, and deleted after their time',
  update_queue_waiters: 'Calls wait for a while only',
};

const looks = 'It looks for a hold itself';
const replaces = 'A state of a running update takes its place, or the same one';
const begun = 'It follows deletedStacks.begin, under the lock of the stack';
const idle = 'It runs under the lock of a stack that has no hold';

/** Statements that delete from tables that are kept, and why a hold allows each. */
const statements: Readonly<Record<string, string>> = {
  'approvals.deleteOld': looks,
  'approvals.dropOldest': 'It deletes requests that nobody approved, when too many are open',
  'approvals.remove': looks,
  'checkpoints.commit': replaces,
  'checkpoints.commitCompaction': replaces,
  'checkpoints.replace': replaces,
  'documentChecks.replace': replaces,
  'journals.revertToBase': replaces,
  'chunks.sweep': 'It deletes chunks that no version needs',
  'deletedStacks.begin': looks,
  'deletedStacks.deleteCheckpoints': begun,
  'deletedStacks.deleteChunks': begun,
  'deletedStacks.deleteHistory': begun,
  'deletedStacks.deleteRow': begun,
  'deletedStacks.deleteUpdates': begun,
  'restorableStacks.endTime': 'A stack under a hold is refused before',
  'retention.deleteCheckpoints': idle,
  'retention.deletePreviews': idle,
  'retention.deleteSegments': idle,
  'retention.releaseChunks': idle,
  'rowRepairs.deleteApproval': 'The stack does not exist',
  'rateCounters.deleteOlderThan': 'Its tables are of counters',
  'src/cli/fsck/tables/organization-check-repository.ts': 'The organization does not exist',
};

interface Subject {
  readonly stack: TestStack;
  readonly id: string;
  readonly secret: string;
  readonly updates: readonly string[];
  readonly checkpoints: readonly string[];
  readonly isDeleted: boolean;
  /** What could be read at the beginning. */
  texts: readonly string[];
}

const versions = [1, 2, 3];
const times = /"(startTime|endTime|askedAt)":("[^"]*"|\d+),/g;
let held: Subject[];
let free: Subject[];
let columns: readonly { table: string; column: string; key: string }[];

/** All rows of a stack, by table. */
async function rowsOf({ checkpoints, id, updates }: Subject): Promise<ReadonlyMap<string, readonly string[]>> {
  const rows = new Map<string, string[]>();
  for (const { column, key, table } of columns) {
    const ids = column === 'update_id' ? updates : column === 'checkpoint_id' ? checkpoints : [id];
    const found = await query<{ key: string }>(
      app,
      `select jsonb_build_array(${key})::text as key from ${table} where ${column} = any ($1::uuid[])`,
      [ids],
    );
    rows.set(table, [...(rows.get(table) ?? []), ...found.map((row) => row.key)]);
  }
  return rows;
}

/** Each table with rows of stacks, by the column that tells whose they are. */
async function listColumns(): Promise<typeof columns> {
  const found = await query<{ table: string; column: string; key: string }>(
    app,
    `select c.relname as table, a.attname as column,
       (select string_agg(quote_ident(k.attname), ', ') from pg_index i join pg_attribute k on k.attrelid = i.indrelid
          and k.attnum = any (i.indkey) where i.indrelid = c.oid and i.indisprimary) as key
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = 'public'::regnamespace
       and (a.attname in ('stack_id', 'update_id', 'checkpoint_id') or c.relname = 'stacks' and a.attname = 'id')
       and not (c.relname in ('stacks', 'updates') and a.attname in ('update_id', 'checkpoint_id'))
     order by 1, 2`,
  );
  return found.map((row) => ({ ...row, key: row.key ?? row.column }));
}

async function write(isDeleted: boolean): Promise<Subject> {
  const stack = await createStack(app);
  const { auth, organization } = stack;
  await importVersions(app, stack, versions.length);
  const [row] = await query<{ id: string }>(
    app,
    `select s.id from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
     where o.name = $1`,
    [organization],
  );
  const id = String(row?.id);
  for (const kind of ['preview', 'update']) {
    const update = await insertEndedUpdate(app, id, [sampleEvent(1), sampleEvent(2)]);
    await query(
      app,
      `update updates set kind = $2, dry_run = $2 = 'preview', exclusive = $2 <> 'preview' where id = $1`,
      [update, kind],
    );
    await pack(app, update);
  }
  const plaintext = Buffer.from('secret').toString('base64');
  const { json } = await ok(app.call('POST', `${stack.path}/encrypt`, { auth, body: { plaintext } }));
  await ok(app.call('POST', `${stack.path}/approvals`, { auth, body: { commit: 'a'.repeat(40), reason: 'x' } }));
  await setRule(app, stack, { kind: 'keep-versions', settings: { newest: 1 } });
  await setRule(app, stack, { kind: 'keep-events', settings: { days: 1 } });
  await setRule(app, stack, { kind: 'keep-previews', settings: { days: 1 } });
  const updates = await query<{ id: string }>(app, 'select id from updates where stack_id = $1', [id]);
  const subject = { stack, id, isDeleted, secret: json.ciphertext as string, texts: [], checkpoints: [] };
  return { ...subject, updates: updates.map((update) => update.id) };
}

/** All that the hold keeps, as users read it, without times. */
async function read({ secret, stack, updates }: Subject): Promise<string[]> {
  const { auth, path: at } = stack;
  const calls = [
    ...versions.map((version) => app.call('GET', `${at}/export/${version}`, { auth })),
    ...updates.map((update) => app.call('GET', `${at}/update/${update}/events`, { auth })),
    app.call('POST', `${at}/decrypt`, { auth, body: { ciphertext: secret } }),
    app.call('GET', `${at}/approvals`, { auth }),
    app.call('GET', `${at}/updates`, { auth }),
  ];
  return (await Promise.all(calls)).map(({ status, text }) => `${status} ${text.replaceAll(times, '')}`);
}

/** Makes all rows three years older, but for the partitions of the audit log, which are by month. */
async function age(): Promise<void> {
  await query(
    app,
    `do $$ declare each record; begin
       set local session_replication_role = replica;
       for each in
         select table_name, string_agg(format(case data_type when 'date' then '%1$I = %1$I - 1095'
             else '%1$I = %1$I - interval ''3 years''' end, column_name), ', ') as changes
         from information_schema.columns c join information_schema.tables t using (table_schema, table_name)
         where table_schema = 'public' and table_type = 'BASE TABLE' and table_name !~ '^(audit_events|installation|processes)'
           and data_type in ('timestamp with time zone', 'date') and is_generated = 'NEVER'
         group by table_name loop
         execute format('update %I set %s', each.table_name, each.changes);
       end loop; end $$`,
  );
}

async function runTasks(): Promise<void> {
  const context = { ...app.context, metrics: createMetrics() };
  for (const { run } of listBackgroundTasks(context, createBackgroundTaskRepository(context.db)))
    await run(new AbortController().signal, { position: null, holder: randomUUID() });
}

const bySubject = async (subject: Subject) => ({ subject, rows: await rowsOf(subject) });
type Before = Awaited<ReturnType<typeof bySubject>>;
let before: Before[];

beforeAll(async () => {
  columns = await listColumns();
  held = [await write(false), await write(true)];
  free = [await write(false), await write(true)];
  await encodeAll(app);
  await runTasks();
  const all = [...held, ...free];
  for (const subject of all) {
    const found = await query<{ id: string }>(app, 'select id from checkpoints where stack_id = $1', [subject.id]);
    Object.assign(subject, { checkpoints: found.map(({ id }) => id), texts: await read(subject) });
  }
  for (const { stack } of held)
    await ok(app.call('PUT', `${stack.path}/legal-hold`, { auth: stack.auth, body: { reason: 'Case 7' } }));
  before = await Promise.all(all.map(bySubject));
  for (const { isDeleted, stack } of all)
    if (isDeleted) await ok(app.call('DELETE', `${stack.path}?force=true`, { auth: stack.auth }));
  await age();
  await query(app, `update stacks set restorable_until = now() - interval '1 day' where restorable_until is not null`);
  // What one task unlinks, another deletes when that is old.
  for (let round = 0; round < 3; round++) {
    await runTasks();
    await age();
  }
});

/** Each statement of the source that deletes from a table that is kept, or from one that it is given. */
async function listDeletions(): Promise<string[]> {
  const found = new Set<string>();
  for await (const file of glob('src/**/*.ts')) {
    const text = await readFile(file, 'utf8');
    for (const { 1: table = '', index } of text.matchAll(/\bdelete from (\w+|\$\{)/g))
      if (table === '${' || kept.includes(table)) {
        const names = [...text.slice(0, index).matchAll(/\/\* (\w+\.\w+)/g)];
        found.add(names.at(-1)?.[1] ?? file);
      }
  }
  return [...found].sort();
}

/** Of which tables rows have gone since. */
async function goneOf({ rows, subject }: Before): Promise<string[]> {
  const now = await rowsOf(subject);
  return [...rows].flatMap(([table, keys]) => (keys.every((key) => now.get(table)?.includes(key)) ? [] : [table]));
}

test('each table with rows of stacks is one that a hold keeps, or is listed with the reason why it does not', () => {
  const tables = new Set(columns.map(({ table }) => table));
  expect([...tables].sort()).toEqual([...kept, ...Object.keys(others)].sort());
});

test('each statement that deletes from such a table is listed with the reason why a hold allows it', async () => {
  expect(await listDeletions()).toEqual(Object.keys(statements).sort());
});

test('no row that is kept goes with one of another table', async () => {
  const found = await query<{ table: string; target: string }>(
    app,
    `select distinct conrelid::regclass::text as table, confrelid::regclass::text as target from pg_constraint
     where contype = 'f' and confdeltype = 'c' and conrelid::regclass::text = any ($1)
     order by 1, 2`,
    [kept],
  );
  expect(found.filter(({ target }) => !kept.includes(target))).toEqual([]);
});

test('no task deletes what a hold keeps, but does so for stacks without one', async () => {
  const [live, deleted, ...ruled] = before as [Before, Before, ...Before[]];
  expect((await goneOf(live)).filter((table) => kept.includes(table))).toEqual([]);
  expect((await goneOf(deleted)).filter((table) => kept.includes(table))).toEqual([]);
  const gone = new Set((await Promise.all(ruled.map(goneOf))).flat());
  expect(kept.filter((table) => !gone.has(table))).toEqual([]);
});

test('all that a hold keeps is read as before, also once the stack is restored', async () => {
  for (const { id, isDeleted, stack } of held)
    if (isDeleted) {
      await query(app, `update stacks set restorable_until = now() + interval '1 day' where id = $1`, [id]);
      const url = `/api/orgs/${stack.organization}/deleted-stacks/${id}/restore`;
      await ok(app.call('POST', url, { auth: stack.auth, body: {} }));
    }
  for (const subject of held) {
    expect(subject.texts.filter((text) => !text.startsWith('200 '))).toEqual([]);
    expect(await read(subject)).toEqual(subject.texts);
  }
});
