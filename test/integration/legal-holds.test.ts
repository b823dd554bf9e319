import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { glob, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createArchivedStackRepository } from '../../src/cli/moving/archive/archived-stack-repository.ts';
import { createBackgroundTaskRepository } from '../../src/shared/platform/background-tasks/background-task-repository.ts';
import { createMetrics } from '../../src/shared/platform/telemetry/metrics.ts';
import { listBackgroundTasks } from '../../src/workers/background-tasks.ts';
import { insertEndedUpdate, pack, sampleEvent } from '../support/archived-events.ts';
import { query } from '../support/database.ts';
import { encodeAll, importVersions } from '../support/encode-versions.ts';
import { person } from '../support/grants.ts';
import { beginning, creation, removal } from '../support/journal-entries.ts';
import { deletions, endings, kept, others } from '../support/legal-hold-tables.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { stackId } from '../support/state-index.ts';
import { testApp } from '../support/test-app.ts';
import { append, cancel } from '../support/update-calls.ts';
import { setRule } from '../support/update-rules.ts';

// A legal hold keeps versions, events, previews, secrets and given approvals, whichever task runs and whatever is old.

const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-holds-'));
const app = testApp({
  settings: {
    ...{ HOLDFAST_INLINE_BYTES: '250', HOLDFAST_SECOND_STORE: path.join(folder, 'second') },
    ...{ HOLDFAST_DELETED_STACK_DAYS: '0', HOLDFAST_BLOB_RETENTION_SECONDS: '1', blobGraceSeconds: 1 },
  },
});
// After the end of the app, which writes to the folder.
afterAll(() => rmSync(folder, { recursive: true, force: true }));

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

const imported = 3;
/** They are followed by the rename of the stack, and an update whose journal can be replayed in part only. */
const versions = [1, 2, 3, 4, 5];
const passing = /"(startTime|endTime|askedAt|approvedAt|expiresAt|valid)":("[^"]*"|\w+)/g;
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

/** Some entries of the journal are in no state, which is accepted. */
async function writeAcceptedJournal(stack: TestStack, id: string): Promise<void> {
  const update = await startUpdate(app, stack, { journal: true });
  await ok(append(app, update, [...creation(1, 'one', stack), beginning(3, 3), removal(4, 3, 99)]));
  await ok(cancel(app, stack, update));
  await app.context.compactor.compact(update.id);
  const [fault] = await app.context.compactions.findFaults(id);
  expect(fault && (await app.context.compactions.acceptFault(fault))).toBe(true);
}

async function writeApprovals({ auth, organization, path: at }: TestStack): Promise<void> {
  const ask = async (commit: string) =>
    (await ok(app.call('POST', `${at}/approvals`, { auth, body: { commit: commit.repeat(40), reason: 'x' } }))).json.id;
  await ask('a');
  const giver = await person(app, organization, 'admin');
  await ok(app.call('POST', `${at}/approvals/${await ask('b')}`, { auth: giver.auth, body: { reason: 'reviewed' } }));
}

async function write(isDeleted: boolean): Promise<Subject> {
  const created = await createStack(app);
  const { auth } = created;
  await importVersions(app, created, imported);
  const plaintext = Buffer.from('secret').toString('base64');
  const { json } = await ok(app.call('POST', `${created.path}/encrypt`, { auth, body: { plaintext } }));
  // Secrets of older states then need the former name.
  await ok(app.call('POST', `${created.path}/rename`, { auth, body: { newName: 'renamed' } }));
  const stack = { ...created, stack: 'renamed', path: created.path.replace(/dev$/, 'renamed') };
  const id = await stackId(app, stack);
  for (const kind of ['preview', 'update']) {
    const update = await insertEndedUpdate(app, id, [sampleEvent(1), sampleEvent(2)]);
    await query(
      app,
      `update updates set kind = $2, dry_run = $2 = 'preview', exclusive = $2 <> 'preview' where id = $1`,
      [update, kind],
    );
    await pack(app, update);
  }
  await writeAcceptedJournal(stack, id);
  await writeApprovals(stack);
  await setRule(app, stack, { kind: 'keep-versions', settings: { newest: 1 } });
  await setRule(app, stack, { kind: 'keep-events', settings: { days: 1 } });
  await setRule(app, stack, { kind: 'keep-previews', settings: { days: 1 } });
  const updates = await query<{ id: string }>(app, 'select id from updates where stack_id = $1', [id]);
  const subject = { stack, id, isDeleted, secret: json.ciphertext as string, texts: [], checkpoints: [] };
  return { ...subject, updates: updates.map((update) => update.id) };
}

/** All that the hold keeps, as users read it, without what changes with time. */
async function read({ secret, stack, updates }: Subject): Promise<string[]> {
  const { auth, path: at } = stack;
  const calls = [
    ...versions.map((version) => app.call('GET', `${at}/export/${version}`, { auth })),
    ...updates.map((update) => app.call('GET', `${at}/update/${update}/events`, { auth })),
    app.call('POST', `${at}/decrypt`, { auth, body: { ciphertext: secret } }),
    app.call('GET', `${at}/approvals`, { auth }),
    app.call('GET', `${at}/updates`, { auth }),
  ];
  return (await Promise.all(calls)).map(({ status, text }) => `${status} ${text.replaceAll(passing, '')}`);
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

/** All texts of the source and of functions of the database, by what they are called if their statements have no name. */
async function readStatements(): Promise<ReadonlyMap<string, string>> {
  const functions = await query<{ name: string; text: string }>(
    app,
    `select proname as name, prosrc as text from pg_proc where pronamespace = 'public'::regnamespace`,
  );
  const texts = new Map(functions.map(({ name, text }) => [`function ${name}`, text]));
  for await (const file of glob('src/**/*.ts')) texts.set(file, await readFile(file, 'utf8'));
  return texts;
}

/** What these statements are called, with the names that they have in the first group. */
async function findStatements(pattern: RegExp): Promise<[name: string, found: string][]> {
  return [...(await readStatements())].flatMap(([place, text]) =>
    [...text.matchAll(pattern)].map(({ 1: found = '', index }): [string, string] => {
      const names = [...text.slice(0, index).matchAll(/\/\* (\w+\.\w+)/g)];
      return [names.at(-1)?.[1] ?? place, found];
    }),
  );
}

/** From which tables that are kept, or given ones, each statement deletes. */
async function listDeletions(): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {};
  for (const [name, word] of await findStatements(/\bdelete\s+from\s+(?:only\s+)?(?:public\.)?(\w+|\$\{|%)/gi)) {
    const table = /\w/.test(word) ? word : '?';
    if (table === '?' || kept.includes(table)) found[name] = [...(found[name] ?? []), table];
  }
  return found;
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
  const listed = Object.entries(deletions).map(([name, { from }]) => [name, from]);
  expect(await listDeletions()).toEqual(Object.fromEntries(listed));
});

test('each statement that ends a hold is listed with its reason', async () => {
  const found = await findStatements(/\bheld_at\s*=\s*null|\bheld_at\b[^;]*?\)\s*=\s*\(\s*null/gi);
  expect(found.map(([name]) => name).sort()).toEqual(Object.keys(endings).sort());
});

test('no row that is kept goes with one of another table', async () => {
  const found = await query<{ table: string; target: string }>(
    app,
    `select distinct conrelid::regclass::text as table, confrelid::regclass::text as target from pg_constraint
     where contype = 'f' and confdeltype = 'c' and conrelid::regclass::text = any ($1)
     order by 1, 2`,
    [kept],
  );
  // An organization that has stacks cannot be deleted.
  const allowed = [{ table: 'former_stack_names', target: 'organizations' }];
  expect(found.filter(({ target }) => !kept.includes(target))).toEqual(allowed);
});

test('no task deletes what a hold keeps, but does so for stacks without one', async () => {
  const [live, deleted, freeLive, freeDeleted] = await Promise.all(before.map(goneOf));
  const remaining = (gone: readonly string[] = []) => kept.filter((table) => !gone.includes(table));
  expect({ live: remaining(live), deleted: remaining(deleted) }).toEqual({ live: kept, deleted: kept });
  // What no rule deletes.
  expect(remaining(freeLive)).toEqual(['stacks', 'encryption_keys', 'former_stack_names']);
  expect(remaining(freeDeleted)).toEqual([]);
});

test('the archive of an organization does not contain its holds, nor the deleted stacks that they keep, and says so', async () => {
  const remainders = await Promise.all(
    held.map(async ({ stack }) => {
      const [row] = await query<{ id: string }>(app, 'select id from organizations where name = $1', [
        stack.organization,
      ]);
      return createArchivedStackRepository(app.context.db).listRemainder(String(row?.id));
    }),
  );
  const names = ['proj/renamed', 'proj/renamed (deleted, with its data)'];
  expect(remainders).toMatchObject(names.map((name) => ({ 'legal holds': [name] })));
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
