import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createBackgroundTaskRepository } from '../../src/shared/platform/background-tasks/background-task-repository.ts';
import { createMetrics } from '../../src/shared/platform/telemetry/metrics.ts';
import { listBackgroundTasks } from '../../src/workers/background-tasks.ts';
import type { BackgroundTask } from '../../src/workers/platform/background-task.ts';
import { writeEverything } from '../support/all-documents.ts';
import { browserOf } from '../support/browser.ts';
import { bundlePassphrase } from '../support/bundle.ts';
import { query } from '../support/database.ts';
import { PolicyCalls } from '../support/policy-packs.ts';
import { createStack, ok, startUpdate } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';
import { complete } from '../support/update-calls.ts';
import { createHook } from '../support/webhooks.ts';

// A database may be restored for what has become old since: nothing is deleted by age before it takes over.

const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-age-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** With all tasks that there are. */
const app = testApp({
  settings: {
    HOLDFAST_INLINE_BYTES: '1',
    HOLDFAST_SECOND_STORE: path.join(folder, 'second'),
    HOLDFAST_BACKUP_TO: path.join(folder, 'backups'),
    HOLDFAST_BUNDLE_URL: `file://${path.join(folder, 'bundle')}`,
    HOLDFAST_BUNDLE_PASSPHRASE: bundlePassphrase,
    HOLDFAST_AUDIT_EXPORT: 'true',
    HOLDFAST_AUDIT_EXPORT_URL: 'https://hooks.example.com/audit',
    HOLDFAST_AUDIT_RETENTION_DAYS: '31',
  },
});

const moves = 'What it deletes is elsewhere by then';
const counts = 'It adds rows up, and deletes those';
const adds = 'It deletes nothing';
const waits = 'It waits for the take-over itself';
const ended = 'What it deletes says nothing any more, whatever the time is';

/** Tasks that do not wait, and why. One is added here once it is clear that it deletes nothing because of its age. */
const others: Readonly<Record<string, string>> = {
  'watch-clock': adds,
  'expire-leases': adds,
  'clip-waits': adds,
  'compact-journals': moves,
  'archive-events': moves,
  'copy-to-second-store': 'It deletes what other tasks have deleted, in stores that are this database’s',
  'compare-second-store': adds,
  'sweep-failed-lookups': ended,
  'sweep-rate-counters': ended,
  'sweep-lock-queue': 'The calls that waited have ended with their processes',
  'sweep-projects': 'It deletes projects without stacks, of any age',
  'evaluate-drift': adds,
  'sum-project-days': counts,
  'chain-audit': adds,
  'store-audit-heads': waits,
  'export-audit': waits,
  'send-audit': waits,
  'add-audit-partitions': adds,
  'measure-storage': waits,
  'encode-versions': moves,
  'back-up': waits,
  'verify-backup': adds,
  bundle: waits,
  reconcile: adds,
};

let tasks: BackgroundTask[];

/** Of which rows the tasks of `others` delete some because of what has happened, or say nothing once they are old. */
const passing = [
  'project_day_changes',
  'project_day_delivery_changes',
  'stack_counts',
  'rate_counters',
  'failed_lookups',
];

/** In seconds since 1970. */
const soon = (): number => Math.floor(Date.now() / 1000) + 3600;

beforeAll(async () => {
  // The app has no tasks of its own, but metrics of theirs.
  const context = { ...app.context, metrics: createMetrics() };
  tasks = listBackgroundTasks(context, createBackgroundTaskRepository(app.context.db));
  const { stack } = await writeEverything(app);
  const { auth } = stack;
  const other = await createStack(app);
  const update = await startUpdate(app, other);
  await ok(complete(app, update, 'failed'));
  await ok(app.call('DELETE', `${other.path}?force=true`, { auth: other.auth }));
  const [login] = await query<{ login: string }>(app, 'select login from users order by login limit 1');
  await browserOf(app, String(login?.login));
  await ok(app.call('POST', '/api/user/tokens', { auth, body: { description: 'old', expires: soon() } }));
  await ok(new PolicyCalls(app, stack).begin({ name: 'unfinished' }));
  await createHook(app, stack, 'stack', { payloadUrl: 'https://hooks.example.com/x' });
  await ok(complete(app, await startUpdate(app, stack)));
  const approval = { commit: 'c'.repeat(40) };
  await ok(app.call('POST', `${stack.path}/approvals`, { auth, body: approval }));
  await query(
    app,
    `insert into organization_storage (organization_id, day, state_bytes, journal_bytes, event_bytes, measured_at, took_ms)
     select id, current_date - n, 0, 0, 0, now() - make_interval(days => n), 0 from organizations, generate_series(1, 5) n`,
  );
  await age();
  await query(app, 'update installation set outgoing_held_since = now()');
  await query(app, 'create table noted_deletions (name text not null)');
  await query(
    app,
    `create function note_deletion() returns trigger language plpgsql security definer set search_path = public as
     $$ begin insert into noted_deletions values (tg_table_name); return null; end $$`,
  );
  await query(
    app,
    `do $$ declare name text; begin
       for name in select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace
         and relname <> 'noted_deletions' loop
         execute format('create trigger note_deletion after delete on %I for each row execute function note_deletion()', name);
       end loop; end $$`,
  );
});

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

test('each task says that it deletes by age, or is listed with the reason why what it deletes need not wait', () => {
  const declared = tasks.filter(({ deletesByAge }) => deletesByAge);
  expect(declared.length).toBeGreaterThan(10);
  const rest = tasks.filter(({ deletesByAge }) => !deletesByAge);
  expect(rest.map(({ name }) => name).sort()).toEqual(Object.keys(others).sort());
});

test('until a restored database takes over, no task that runs deletes what is old', async () => {
  const deleted: Record<string, string[]> = {};
  for (const { deletesByAge, name, run } of tasks) {
    if (deletesByAge || name === 'verify-backup') continue;
    await run(new AbortController().signal, { position: null, holder: randomUUID() });
    const rows = await query<{ name: string }>(app, 'delete from noted_deletions returning name');
    const tables = [...new Set(rows.map((row) => row.name))].filter((table) => !passing.includes(table));
    if (tables.length > 0) deleted[name] = tables.sort();
  }
  expect(deleted).toEqual({});
});

test('after the take-over, what is old is deleted', async () => {
  await query(app, 'update installation set outgoing_held_since = null');
  await query(app, `update organization_storage set took_ms = 0, measured_at = measured_at - interval '2 hours'`);
  for (const { run } of tasks.filter(({ deletesByAge, name }) => deletesByAge || name === 'measure-storage'))
    await run(new AbortController().signal, { position: null, holder: randomUUID() });
  const rows = await query<{ name: string }>(app, 'delete from noted_deletions returning name');
  expect([...new Set(rows.map(({ name }) => name))].sort()).toEqual([
    ...['api_tokens', 'job_results', 'organization_storage', 'policy_pack_versions', 'policy_packs', 'project_days'],
    ...['sessions', 'stack_days', 'stacks', 'state_index_due', 'update_approvals', 'updates'],
  ]);
});
