import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { runInProcess } from '../support/admin.ts';
import { query } from '../support/database.ts';
import { hiddenFunctions } from '../support/hidden-functions.ts';
import { creation } from '../support/journal-entries.ts';
import { createStack, deployment, ok, startUpdate } from '../support/state.ts';
import { type TestApp, testApp } from '../support/test-app.ts';
import { append, complete } from '../support/update-calls.ts';

async function hide(app: TestApp): Promise<void> {
  for (const name of hiddenFunctions) await query(app, `revoke execute on function ${name} from public`);
}

/** Amazon Aurora refuses functions about the log with this error while its `wal_level` is the default. */
async function refuse(app: TestApp): Promise<void> {
  for (const name of hiddenFunctions) {
    const [row] = await query<{ definition: string }>(
      app,
      `select pg_get_functiondef('${name}'::regprocedure) as definition`,
    );
    const refusing = row?.definition.replace(
      /LANGUAGE internal.*/s,
      () =>
        `language plpgsql as $$begin raise exception 'wal_level must be set to ''logical''' using errcode = '55000'; end$$`,
    );
    // Postgres calls its own functions by their oid, whatever their definition.
    const signature = name.split('(')[0];
    await query(
      app,
      `set allow_system_table_mods = on; alter function ${name} rename to ${signature}_before; ${refusing}`,
    );
  }
}

const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-hidden-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.each([
  ['hides', hide],
  ['refuses', refuse],
])('a database that %s functions about files and the log', (kind, change) => {
  const app = testApp();
  beforeAll(() => change(app));

  test('serves updates', async () => {
    const stack = await createStack(app);
    await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(2) }));
    const update = await startUpdate(app, stack, { journal: true });
    await ok(append(app, update, creation(1, 'a', stack)));
    await ok(complete(app, update));
    const exported = await ok(app.call('GET', `${stack.path}/export`, { auth: stack.auth }));
    expect(exported.json.deployment.resources).toHaveLength(3);
  });

  test.each(['fsck', 'site status', 'quotas', 'audit verify'])('lets holdfast admin %s run', async (words) => {
    expect(await runInProcess(app, 'admin', ...words.split(' '))).toMatchObject({ code: 0, stderr: '' });
  });

  test('is backed up and examined', async () => {
    const to = path.join(folder, kind);
    expect(await runInProcess(app, 'backup', 'create', '--to', to)).toMatchObject({ code: 0, stderr: '' });
    const { stdout } = await runInProcess(app, 'doctor');
    expect(stdout).not.toMatch(/pg_|wal_level/);
  });
});
