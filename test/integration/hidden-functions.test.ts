import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { runInProcess } from '../support/admin.ts';
import { query } from '../support/database.ts';
import { creation } from '../support/journal-entries.ts';
import { createStack, deployment, ok, startUpdate } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';
import { append, complete } from '../support/update-calls.ts';

// Managed servers, above all those whose storage is not Postgres's own, hide functions about files and the write-ahead log.

const hidden = [
  'pg_control_system()',
  'pg_control_checkpoint()',
  'pg_walfile_name(pg_lsn)',
  'pg_current_wal_lsn()',
  'pg_current_wal_flush_lsn()',
  'pg_current_wal_insert_lsn()',
  'pg_last_wal_replay_lsn()',
  'pg_last_wal_receive_lsn()',
  'pg_last_xact_replay_timestamp()',
];

const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-hidden-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const app = testApp();
beforeAll(async () => {
  for (const name of hidden) await query(app, `revoke execute on function ${name} from public`);
});

test('a server runs on a database that hides functions about files and the log', async () => {
  const stack = await createStack(app);
  await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(2) }));
  const update = await startUpdate(app, stack, { journal: true });
  await ok(append(app, update, creation(1, 'a', stack)));
  await ok(complete(app, update));
  const exported = await ok(app.call('GET', `${stack.path}/export`, { auth: stack.auth }));
  expect(exported.json.deployment.resources).toHaveLength(3);
});

test.each(['fsck', 'site status', 'quotas', 'audit verify'])('holdfast admin %s works there', async (words) => {
  expect(await runInProcess(app, 'admin', ...words.split(' '))).toMatchObject({ code: 0, stderr: '' });
});

test('a backup and the doctor work there', async () => {
  const to = path.join(folder, 'backup');
  expect(await runInProcess(app, 'backup', 'create', '--to', to)).toMatchObject({ code: 0, stderr: '' });
  const { stdout } = await runInProcess(app, 'doctor');
  expect(stdout).not.toMatch(/pg_/);
});
