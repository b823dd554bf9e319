import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { migrate, migrateIfPending } from '../../src/shared/platform/db/migrate.ts';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import { type PgBouncer, startPgBouncer } from '../../testkit/pgbouncer.ts';
import { query } from '../support/database.ts';
import { appRole } from '../support/global-setup.ts';
import { createStack, deployment, ok, startUpdate } from '../support/state.ts';
import { createTestApp, createTestDatabase, type TestApp, type TestDatabase } from '../support/test-app.ts';
import { describeWithTools } from '../support/tools.ts';
import { until } from '../support/until.ts';
import { append, complete, saveVerbatim } from '../support/update-calls.ts';

await describeWithTools('behind PgBouncer', ['pgbouncer'], () => {
  let database: TestDatabase;
  let pooler: PgBouncer;
  beforeAll(async () => {
    database = await createTestDatabase();
    pooler = await startPgBouncer(database.url, {
      poolMode: 'transaction',
      poolSize: 3,
      settings: { ignore_startup_parameters: 'statement_timeout,idle_in_transaction_session_timeout' },
    });
  });
  afterAll(async () => {
    await pooler?.stop();
    await database?.[Symbol.asyncDispose]();
  });

  const start = (): Promise<TestApp> => createTestApp({ database: { ...database, url: pooler.url } });

  test('a pooler that refuses parameters ends the start with a message, at once', async () => {
    await using strict = await startPgBouncer(database.url, { poolMode: 'transaction', poolSize: 3 });
    const settings = { startWaitSeconds: 3600 };
    await expect(createTestApp({ database: { ...database, url: strict.url }, settings })).rejects.toThrow(
      /refuses the parameter \w+_timeout\. Add ignore_startup_parameters/,
    );
  });

  test('migrations run through a pooler of sessions; one of transactions is refused, and no lock stays behind', async () => {
    const logger = createLogger({ level: 'silent' });
    const run = (url: string) => migrate({ url, connectMs: 60_000, waitMs: 0, logger }, { appRole });
    await using transactions = await startPgBouncer(database.ownerUrl, { poolMode: 'transaction', poolSize: 3 });
    await expect(run(transactions.url)).rejects.toThrow('points to a transaction pooler');
    await using sessions = await startPgBouncer(database.ownerUrl, { poolMode: 'session', poolSize: 3 });
    expect(await run(sessions.url)).toEqual([]);
    expect(await run(database.ownerUrl)).toEqual([]);
  });

  test('a server that may migrate starts through a pooler of transactions while nothing is pending', async () => {
    const logger = createLogger({ level: 'silent' });
    await migrateIfPending({ url: pooler.url, connectMs: 60_000, waitMs: 0, logger });
    const owner = { database } as TestApp;
    const newest = 'id = (select max(id) from holdfast_migrations)';
    const [last] = await query<{ name: string }>(owner, `select name from holdfast_migrations where ${newest}`);
    await query(owner, `update holdfast_migrations set name = 'another' where ${newest}`);
    await using transactions = await startPgBouncer(database.ownerUrl, { poolMode: 'transaction', poolSize: 3 });
    const run = migrateIfPending({ url: transactions.url, connectMs: 60_000, waitMs: 0, logger });
    await expect(run).rejects.toThrow('points to a transaction pooler');
    await query(owner, `update holdfast_migrations set name = '${last?.name}' where ${newest}`);
  });

  test('a queued update gets its turn', async () => {
    await using app = await createTestApp({
      database: { ...database, url: pooler.url },
      settings: { HOLDFAST_LOCK_WAIT_SECONDS: '600', HOLDFAST_LONG_POLL_SECONDS: '100' },
    });
    const stack = await createStack(app);
    const first = await startUpdate(app, stack);
    const call = startUpdate(app, stack);
    await until(async () => (await query(app, 'select from update_queue_waiters')).length > 0, 'the call waits');
    await ok(complete(app, first));
    await ok(complete(app, await call));
  });

  test('updates of many stacks at once on two replicas', async () => {
    const [one, other] = await Promise.all([start(), start()]);
    const answers: string[] = [];
    try {
      await Promise.all(
        Array.from({ length: 12 }, async (_, index) => {
          const app = index % 2 === 0 ? one : other;
          const stack = await createStack(app);
          for (let round = 1; round <= 3; round++) {
            const update = await startUpdate(app, stack, { journal: round === 3 });
            const saved =
              round < 3 ? await saveVerbatim(app, update, 1, deployment(round)) : await append(app, update, []);
            const ended = await complete(app, update);
            answers.push(`${saved.status} ${ended.status} ${saved.status > 299 ? saved.text : ''}`);
          }
          const exported = await ok(app.call('GET', `${stack.path}/export`, { auth: stack.auth }));
          expect(exported.json.deployment.resources).toHaveLength(2);
        }),
      );
      expect(new Set(answers)).toEqual(new Set(['204 204 ']));
    } finally {
      await one[Symbol.asyncDispose]();
      await other[Symbol.asyncDispose]();
    }
  });
});
