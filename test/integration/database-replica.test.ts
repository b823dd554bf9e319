import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { Type } from 'typebox';
import { HistoryService } from '../../src/api/updates/history-service.ts';
import { migrate } from '../../src/shared/platform/db/migrate.ts';
import { sql } from '../../src/shared/platform/db/sql.ts';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import { type PostgresPair, startPostgresPair } from '../../testkit/postgres-pair.ts';
import { appRole, asApp, createAppRole } from '../support/global-setup.ts';
import { creation } from '../support/journal-entries.ts';
import { exportedNames } from '../support/stack-state.ts';
import { createStack, deployment, ok, startUpdate, type TestStack } from '../support/state.ts';
import { openTcpProxy } from '../support/tcp-proxy.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, complete, saveState } from '../support/update-calls.ts';

let pair: PostgresPair;
let writer: TestApp;
let reader: TestApp;
const lines: string[] = [];

const connect = async (url: string): Promise<pg.Client & AsyncDisposable> => {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() });
};
const onStandby = async (statement: string): Promise<void> => {
  await using client = await connect(pair.standbyUrl);
  await client.query(statement);
};
/** Two processes that share a data directory; both read from the standby. */
const start = (dataDir: string | undefined, replicaUrl: string): Promise<TestApp> =>
  createTestApp({
    database: { url: asApp(pair.primaryUrl), ownerUrl: pair.primaryUrl, [Symbol.asyncDispose]: async () => {} },
    ...(dataDir === undefined ? {} : { dataDir }),
    settings: { HOLDFAST_DATABASE_REPLICA_URL: replicaUrl, HOLDFAST_INLINE_BYTES: '2048' },
    log: { write: (line) => lines.push(line) },
  });
const inState = (app: TestApp, state: string): Promise<void> =>
  until(() => app.context.replica?.state === state, `the replica is ${state}`);
const reads = async (app: TestApp, server: string): Promise<number> => {
  const { values } = await app.context.metrics.replicaReads.get();
  return values.find(({ labels }) => labels['server'] === server)?.value ?? 0;
};
const fallbacks = async (app: TestApp, reason: string): Promise<number> => {
  const { values } = await app.context.metrics.replicaFallbacks.get();
  return values.find(({ labels }) => labels['reason'] === reason)?.value ?? 0;
};

beforeAll(async () => {
  pair = await startPostgresPair({ isSynchronous: false });
  const logger = createLogger({ level: 'silent' });
  await createAppRole(pair.primaryUrl);
  await migrate({ url: pair.primaryUrl, connectMs: 60_000, waitMs: 0, logger }, { appRole });
  writer = await start(undefined, asApp(pair.standbyUrl));
  reader = await start(writer.dataDir, asApp(pair.standbyUrl));
  await inState(reader, 'serving');
});
afterEach(() => {
  lines.length = 0;
});
afterAll(async () => {
  await reader?.[Symbol.asyncDispose]();
  await writer?.[Symbol.asyncDispose]();
  await pair?.[Symbol.asyncDispose]();
});

/** Writes through one process; each acknowledged write must be in what another process reads right after it. */
async function expectFresh(stack: TestStack, rounds: number, first = 0): Promise<void> {
  const { auth } = stack;
  const get = async (path: string) => (await ok(reader.call('GET', path, { auth }))).json;
  for (let round = first; round < first + rounds; round++) {
    const update = await startUpdate(writer, stack);
    const events = [{ sequence: 0, timestamp: 1, stdoutEvent: { message: `round ${round}`, color: 'never' } }];
    await ok(writer.call('POST', `${update.path}/events/batch`, { auth: update.lease, body: { events } }));
    expect((await get(`${update.path}/events`)).events).toHaveLength(1);
    await ok(saveState(writer, update, 1 + round, `round ${round}, `));
    expect(await exportedNames(reader, stack)).toHaveLength(1 + round);
    await ok(complete(writer, update));
    expect(await exportedNames(reader, stack, update.version)).toHaveLength(1 + round);
    const [newest] = (await get(`${stack.path}/updates?pageSize=1&page=1`)).updates;
    expect(newest).toMatchObject({ version: update.version, result: 'succeeded' });
    expect((await get(`${stack.path}/updates/latest`)).info.version).toBe(update.version);
    const { stacks } = await get(`/api/user/stacks?organization=${stack.organization}`);
    expect(stacks[0].resourceCount).toBe(1 + round);
  }
}

test('a read from the replica right after an acknowledgment of another process includes the write', async () => {
  const [served, fallen] = [await reads(reader, 'replica'), await reads(reader, 'primary')];
  const stack = await createStack(writer);
  let [rounds, share] = [0, 0];
  // On a busy machine the replica may be behind for a while.
  while (share === 0 && rounds < 500) {
    await expectFresh(stack, 5, rounds);
    rounds += 5;
    share = (await reads(reader, 'replica')) - served;
  }
  expect(share).toBeGreaterThan(0);
  expect(share + (await reads(reader, 'primary')) - fallen).toBe(6 * rounds);
});

test('entries of a running journal are read from the primary', async () => {
  const stack = await createStack(writer);
  const update = await startUpdate(writer, stack, { journal: true });
  for (let index = 0; index < 5; index++) {
    await ok(append(writer, update, creation(1 + 2 * index, `n${index}`, stack)));
    expect(await exportedNames(reader, stack)).toContain(`n${index}`);
  }
  await ok(complete(writer, update));
  expect(await exportedNames(reader, stack)).toContain('n4');
});

test.each([10, 400])('a replica that applies commits %i ms late shows nothing older', async (ms) => {
  await onStandby(`alter system set recovery_min_apply_delay = ${ms}`);
  await onStandby('select pg_reload_conf()');
  try {
    const stack = await createStack(writer);
    const loads = await Promise.all(Array.from({ length: 2 }, () => createStack(writer)));
    await Promise.all([expectFresh(stack, 3), ...loads.map((load) => expectFresh(load, 2))]);
  } finally {
    await onStandby('alter system reset recovery_min_apply_delay');
    await onStandby('select pg_reload_conf()');
  }
});

test('a replica that has stopped replaying serves no reads until it goes on', async () => {
  const stack = await createStack(writer);
  await expectFresh(stack, 1);
  await inState(reader, 'serving');
  await onStandby('select pg_wal_replay_pause()');
  try {
    await expectFresh(stack, 3, 1);
    await inState(reader, 'behind');
    expect(await fallbacks(reader, 'behind')).toBeGreaterThan(0);
    const metrics = await reader.context.metrics.registry.metrics();
    expect(metrics).toContain('holdfast_replica_state{state="behind"} 1');
    expect(Number(/^holdfast_replica_lag_bytes (\d+)$/m.exec(metrics)?.[1])).toBeGreaterThan(0);
    expect(Number(/^holdfast_replica_lag_seconds (\S+)$/m.exec(metrics)?.[1])).toBeGreaterThan(0);
  } finally {
    await onStandby('select pg_wal_replay_resume()');
  }
  await inState(reader, 'serving');
  const changes = lines.filter((line) => line.includes('the replica of the database'));
  // Two processes, and each change once.
  expect(changes.length).toBeLessThanOrEqual(4);
});

test('a statement that conflicts with recovery is repeated at the primary', async () => {
  await using primary = await connect(pair.primaryUrl);
  await primary.query('create table conflicting as select generate_series(1, 1000) as number');
  await onStandby('alter system set max_standby_streaming_delay = 0');
  await onStandby('select pg_reload_conf()');
  await inState(reader, 'serving');
  await using standby = await connect(pair.standbyUrl);
  const isCounting = async (): Promise<boolean> => {
    const running = `select 1 from pg_stat_activity where state = 'active' and wait_event = 'PgSleep'`;
    return (await standby.query(running)).rows.length > 0;
  };
  await until(async () => {
    const read = await reader.context.replica?.begin();
    if (!read) return false;
    const Count = Type.Object({ count: Type.Integer(), isReplica: Type.Boolean() });
    const counted = read.one(sql.rows(Count)`
      select count(*)::integer as count, pg_is_in_recovery() as "isReplica" from conflicting
      where case when pg_is_in_recovery() then pg_sleep(0.02) end is not null or not pg_is_in_recovery()`);
    let isOver = false;
    const end = (): void => {
      isOver = true;
    };
    counted.then(end, end);
    await until(async () => isOver || (await isCounting()), 'the statement runs at the standby');
    await primary.query('delete from conflicting where number = (select min(number) from conflicting)');
    await primary.query('vacuum conflicting');
    const { isReplica } = await counted;
    return !isReplica && (await fallbacks(reader, 'conflict')) > 0;
  }, 'a conflict');
  await onStandby('alter system reset max_standby_streaming_delay');
  await onStandby('select pg_reload_conf()');
});

test.each([
  ['another cluster', () => process.env['HOLDFAST_TEST_DATABASE_URL'] as string],
  ['not a standby', () => pair.primaryUrl],
  ['away', () => pair.standbyUrl.replace(/:[0-9a-f]{32}@/, ':wrong@')],
])('with a URL that leads to %s, the process starts and reads from the primary', async (state, url) => {
  await using app = await start(writer.dataDir, url());
  const stack = await createStack(app);
  await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(3) }));
  await inState(app, state);
  expect(await exportedNames(app, stack)).toHaveLength(3);
  expect(await reads(app, 'replica')).toBe(0);
});

test('a history that is being sent when the replica stops continues from the primary, and a restarted one serves again', async () => {
  const stack = await createStack(writer);
  const messages = Array.from({ length: 4 }, (_, index) => `${index}`.repeat(200_000));
  for (const message of messages) {
    const body = { metadata: { message, environment: {} } };
    const { json } = await ok(writer.call('POST', `${stack.path}/update`, { auth: stack.auth, body }));
    const started = await ok(
      writer.call('POST', `${stack.path}/update/${json.updateID}`, { auth: stack.auth, body: {} }),
    );
    const update = { id: json.updateID, path: `${stack.path}/update/${json.updateID}`, version: 0 };
    await ok(complete(writer, { ...update, lease: `update-token ${started.json.token}` }));
  }
  await inState(reader, 'serving');
  const { id } = (await writer.context.stacks.find(stack)) as { id: string };
  const history = new HistoryService(reader.context).json(id, null, { shown: 'updates', form: 'cli' });
  const before = await fallbacks(reader, 'failed');
  const parts = [(await history.next()).value as string];
  await pair.standby.kill();
  for await (const part of history) parts.push(part);
  expect(JSON.parse(`[${parts.join('')}]`).map((update: { message: string }) => update.message)).toEqual(
    messages.reverse(),
  );
  expect(await fallbacks(reader, 'failed')).toBe(before + 1);
  await inState(reader, 'away');
  await expectFresh(stack, 1);
  await pair.standby.start();
  await inState(reader, 'serving');
  await expectFresh(stack, 1, 1);
});

test('a replica that hangs delays reads, and fails none', async () => {
  await using proxy = await openTcpProxy(pair.standbyUrl);
  await using app = await start(writer.dataDir, proxy.url);
  const stack = await createStack(writer);
  await inState(app, 'serving');
  await ok(writer.call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(3) }));
  expect(await exportedNames(app, stack)).toHaveLength(3);
  proxy.hang();
  expect(await exportedNames(app, stack)).toHaveLength(3);
  await inState(app, 'away');
  expect(await exportedNames(app, stack)).toHaveLength(3);
});

// The last one: the pair after it is not valid.
test('a replica that was promoted serves no reads', async () => {
  const stack = await createStack(writer);
  await inState(reader, 'serving');
  await pair.promote();
  await expectFresh(stack, 2);
  await inState(reader, 'not a standby');
});
