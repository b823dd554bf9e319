import { expect, test } from '@jest/globals';
import { createSignInLinkRepository } from '../../src/shared/identity/sign-in-link-repository.ts';
import { describeLoss } from '../../src/shared/updates/lease-loss.ts';
import { checkForRollback } from '../../src/shared/updates/rollback-detection/rollback-monitor.ts';
import { runAdminCommand } from '../support/admin.ts';
import { PageBrowser, setPassword } from '../support/browser.ts';
import { query } from '../support/database.ts';
import { person } from '../support/grants.ts';
import { creation } from '../support/journal-entries.ts';
import { join, leaveRunning } from '../support/lease-owners.ts';
import { ok, startUpdate } from '../support/state.ts';
import { createTestApp, createTestDatabase, type TestApp } from '../support/test-app.ts';
import { append, complete, getUpdate } from '../support/update-calls.ts';

const entries = (app: TestApp, update: { readonly id: string }) =>
  query(app, 'select 1 from journal_entries where update_id = $1', [update.id]);

test('updates end in a restored copy of the database, on another timeline and by command, and only then', async () => {
  await using database = await createTestDatabase();
  await using app = await createTestApp({ database });
  const member = await join(app);
  const look = () => checkForRollback(app.context);

  // What is noted for the first time, and what is noted already, ends nothing.
  const update = await leaveRunning(app, member);
  await look();
  await look();
  await query(app, 'update installation set timeline = null, system_id = null');
  await look();
  await ok(append(app, update, creation(7, 'after', member.stack)));

  for (const change of [
    `update installation set place = '1' || place`,
    `update installation set timeline = '7' || timeline`,
    `update installation set system_id = '1' || system_id`,
  ]) {
    const running = change.includes('place') ? update : await startUpdate(app, member.stack, { journal: true });
    const before = (await entries(app, running)).length;
    await query(app, change);
    await look();
    const refused = await append(app, running, creation(9, 'late', member.stack));
    expect(refused.status).toBe(403);
    expect(refused.json.message).toContain(describeLoss('database-restored'));
    expect(refused.json.message).toContain('`pulumi state repair`, then `pulumi refresh`');
    expect((await complete(app, running)).status).toBe(403);
    expect((await entries(app, running)).length).toBeLessThanOrEqual(before);
    expect((await getUpdate(app, member.owner, running)).status).toBe('cancelled');
  }

  const ordered = await startUpdate(app, member.stack, { journal: true });
  const { code, stdout } = await runAdminCommand(app, 'after-restore');
  expect([code, stdout]).toEqual([0, expect.stringContaining('Ended 1 update.')]);
  expect((await complete(app, ordered)).json.message).toContain('`pulumi state repair`, then `pulumi refresh`');
  expect((await runAdminCommand(app, 'after-restore')).stdout).toContain('No updates were running');

  const next = await startUpdate(app, member.stack, { journal: true });
  await look();
  await ok(complete(app, next));
  const events = await query(app, `select 1 from audit_events where action = 'database.loss'`);
  expect(events).toHaveLength(5);
});

test('after a restore, sessions and sign-in links that had ended are no way in', async () => {
  await using app = await createTestApp();
  const { login, userId } = await person(app, 'acme', 'member');
  await setPassword(app, login);
  const browser = new PageBrowser(app);
  await browser.signIn(login);
  const { secret } = await createSignInLinkRepository(app.context.db).insert(userId, 3600);
  expect(await browser.isSignedIn()).toBe(true);
  const { stdout } = await runAdminCommand(app, 'after-restore');
  expect(stdout).toContain('Repeat the revocations made since the backup');
  expect(await browser.isSignedIn()).toBe(false);
  expect(await createSignInLinkRepository(app.context.db).take(secret)).toBeNull();
});

test('a copy made of the database is another one', async () => {
  await using database = await createTestDatabase();
  const first = await createTestApp({ database });
  await checkForRollback(first.context);
  await leaveRunning(first, await join(first));
  await first[Symbol.asyncDispose]();
  await using copy = await createTestDatabase(database);
  await using app = await createTestApp({ database: copy });
  const running = `select 1 from updates where status in ('not started', 'running')`;
  expect(await query(app, running)).toHaveLength(1);
  await checkForRollback(app.context);
  expect(await query(app, running)).toHaveLength(0);
});

test('complete detects another database before any other check', async () => {
  await using database = await createTestDatabase();
  await using app = await createTestApp({ database });
  const member = await join(app);
  await checkForRollback(app.context);
  const running = await startUpdate(app, member.stack, { journal: true });
  await ok(append(app, running, creation(1, 'one', member.stack)));
  await query(app, `update installation set timeline = '7' || timeline`);
  const refused = await complete(app, running);
  expect([refused.status, refused.json.message]).toEqual([
    403,
    expect.stringContaining('`pulumi state repair`, then `pulumi refresh`'),
  ]);
  expect((await getUpdate(app, member.owner, running)).status).toBe('cancelled');
});
