import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Type } from 'typebox';
import { migrate } from '../../src/shared/platform/db/migrate.ts';
import { sql } from '../../src/shared/platform/db/sql.ts';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import { describeLoss } from '../../src/shared/updates/lease-loss.ts';
import { checkForRollback, watchConnections } from '../../src/shared/updates/rollback-detection/rollback-monitor.ts';
import { type PostgresSpec, preparePostgres } from '../../testkit/cluster-postgres.ts';
import { ClusterProcess } from '../../testkit/cluster-process.ts';
import { findFixedPorts } from '../../testkit/fixed-ports.ts';
import { copyRunningPostgres, putBack } from '../../testkit/postgres-copy.ts';
import { query } from '../support/database.ts';
import { appRole, asApp, createAppRole } from '../support/global-setup.ts';
import { creation } from '../support/journal-entries.ts';
import { join, leaveRunning } from '../support/lease-owners.ts';
import { ok, startUpdate } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, complete, getUpdate, saveState } from '../support/update-calls.ts';

// A copy of the data directory takes the place of the data: the same system identifier, timeline and ids as before.

let home: string;
let spec: PostgresSpec;
let postgres: ClusterProcess;
beforeAll(async () => {
  home = mkdtempSync(path.join(tmpdir(), 'holdfast-put-back-'));
  spec = await preparePostgres(home, (await findFixedPorts(1))[0] as number);
  postgres = new ClusterProcess(spec, () => {});
  await postgres.start();
  await createAppRole(spec.url);
  const logger = createLogger({ level: 'silent' });
  await migrate({ url: spec.url, connectMs: 60_000, waitMs: 0, logger }, { appRole });
});
afterAll(async () => {
  await postgres?.kill();
  rmSync(home, { recursive: true, force: true });
});

const open = (dataDir?: string): Promise<TestApp> =>
  createTestApp({
    database: { url: asApp(spec.url), ownerUrl: spec.url, [Symbol.asyncDispose]: async () => {} },
    ...(dataDir === undefined ? {} : { dataDir }),
  });

/** Ends Postgres, with what `change` does to its data, and waits until the app reaches it again. */
async function restart(app: TestApp, change: () => Promise<void> = async () => {}): Promise<void> {
  await postgres.kill();
  await change();
  await postgres.start();
  await until(
    () =>
      query(app, 'select 1').then(
        () => true,
        () => false,
      ),
    'Postgres answers',
  );
}

const losses = (app: TestApp) => query(app, `select 1 from audit_events where action = 'database.loss'`);

test('a copy of the data directory that is put back ends the updates that are in it, once', async () => {
  await using app = await open();
  await using other = await open(app.dataDir);
  const member = await join(app);
  const early = await leaveRunning(app, member);
  const copy = path.join(home, 'postgres', 'copy');
  await copyRunningPostgres(spec, copy);
  const copied = await query(app, 'select 1 from updates');
  await ok(append(app, early, creation(7, 'lost', member.stack)));
  const owner = await leaveRunning(app, await join(app));
  for (const each of [app, other]) await checkForRollback(each.context);

  await restart(app, () => putBack(copy, spec.dataDir));
  expect(await query(app, 'select 1 from updates')).toHaveLength(copied.length);
  // Nobody has looked yet.
  const refused = await complete(app, early);
  expect([refused.status, refused.json.message]).toEqual([
    403,
    expect.stringContaining(describeLoss('database-restored')),
  ]);
  expect(refused.json.message).toContain('`pulumi state repair`, then `pulumi refresh`');
  expect((await getUpdate(app, member.owner, early)).status).toBe('cancelled');
  for (const each of [other, app]) {
    const unknown = await append(each, owner, creation(9, 'late', member.stack));
    expect([unknown.status, unknown.json.message]).toEqual([
      403,
      expect.stringContaining('`pulumi state repair`, then `pulumi refresh`'),
    ]);
  }

  // The other process notices that it was noted.
  const next = await startUpdate(app, member.stack, { journal: true });
  await ok(append(app, next, creation(1, 'next', member.stack)));
  for (const each of [other, app, other]) await checkForRollback(each.context);
  await ok(complete(app, next));
  expect(await losses(app)).toHaveLength(1);
});

test('a restart after a crash ends nothing', async () => {
  await using app = await open();
  const member = await join(app);
  const running = await leaveRunning(app, member);
  const before = (await losses(app)).length;
  await checkForRollback(app.context);
  for (const name of ['a', 'b']) {
    await ok(append(app, running, creation(name === 'a' ? 11 : 13, name, member.stack)));
    await restart(app);
    await checkForRollback(app.context);
  }
  expect(await losses(app)).toHaveLength(before);
});

test('a loss is noticed before new writes overtake it', async () => {
  await using app = await open();
  watchConnections(app.context);
  const member = await join(app);
  const running = await leaveRunning(app, member);
  const copy = path.join(home, 'postgres', 'small-copy');
  await copyRunningPostgres(spec, copy);
  await ok(append(app, running, creation(7, 'lost', member.stack)));
  await checkForRollback(app.context);
  const before = (await losses(app)).length;

  await restart(app, () => putBack(copy, spec.dataDir));
  // More than was lost, in the first statement after the restore.
  const write = sql.rows(Type.Object({ end: Type.String() }))`
    select pg_logical_emit_message(true, 'test', repeat('x', 64000000))::text as end`;
  await app.context.db.one(write);
  const refused = await append(app, running, creation(9, 'late', member.stack));
  expect([refused.status, refused.json.message]).toEqual([
    403,
    expect.stringContaining('`pulumi state repair`, then `pulumi refresh`'),
  ]);
  expect(await losses(app)).toHaveLength(before + 1);
  await checkForRollback(app.context);
  expect((await getUpdate(app, member.owner, running)).status).toBe('cancelled');
});

test.each(['journal entries', 'a checkpoint'])('the loss of %s after the last look is noticed', async (lost) => {
  await using app = await open();
  watchConnections(app.context);
  const member = await join(app);
  const isJournal = lost === 'journal entries';
  const running = await leaveRunning(app, member, isJournal);
  const write = (name: string) =>
    isJournal
      ? append(app, running, creation(name === 'lost' ? 7 : 9, name, member.stack))
      : saveState(app, running, 3, name);
  await checkForRollback(app.context);
  const copy = path.join(home, 'postgres', `copy-without-${isJournal}`);
  await copyRunningPostgres(spec, copy);
  await ok(write('lost'));
  const before = (await losses(app)).length;

  await restart(app, () => putBack(copy, spec.dataDir));
  const refused = await write('late');
  expect([refused.status, refused.json.message]).toEqual([
    403,
    expect.stringContaining('`pulumi state repair`, then `pulumi refresh`'),
  ]);
  expect(await losses(app)).toHaveLength(before + 1);
});
