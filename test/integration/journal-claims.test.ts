import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { JournalClaimedError } from '../../src/shared/state/journal/journal-compactor.ts';
import { compactEndedUpdates } from '../../src/workers/state/compact-journals.ts';
import { endExpiredUpdates } from '../../src/workers/updates/expire-leases.ts';
import { query } from '../support/database.ts';
import { creation } from '../support/journal-entries.ts';
import { exportedNames } from '../support/stack-state.ts';
import { createStack, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, masterKeys, type TestApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, cancel, complete, expire } from '../support/update-calls.ts';

// All documents go to the blob store, so that each stored compaction leaves a row in `blobs`.
const settings = { HOLDFAST_INLINE_BYTES: '1' };
const resources = 400;

async function journaled(app: TestApp): Promise<{ stack: TestStack; update: RunningUpdate; names: string[] }> {
  const stack = await createStack(app);
  const update = await startUpdate(app, stack, { journal: true });
  const names = Array.from({ length: resources }, (_, at) => `r${at}`);
  await ok(
    append(
      app,
      update,
      names.flatMap((name, at) => creation(1 + 2 * at, name, stack)),
    ),
  );
  return { stack, update, names };
}

const count = async (app: TestApp, table: string): Promise<number> =>
  (await query(app, `select 1 from ${table}`)).length;

test.each(['cancelled', 'running'])(
  'twelve compactions of a %s update, in two processes, create one checkpoint',
  async (status) => {
    await using app = await createTestApp({ settings });
    await using other = await createTestApp({ settings, database: app.database, dataDir: app.dataDir });
    const { stack, update, names } = await journaled(app);
    if (status === 'cancelled') await ok(cancel(app, stack, update));
    const compactors = Array.from({ length: 12 }, (_, at) => (at % 2 === 0 ? app : other).context.compactor);
    await Promise.all(compactors.map((compactor) => compactor.compact(update.id)));
    expect([await count(app, 'checkpoints'), await count(app, 'blobs')]).toEqual([1, 1]);
    if (status === 'running') await ok(complete(other, update));
    expect(await exportedNames(other, stack)).toEqual(names);
    expect(await count(app, 'blobs')).toBe(1);
  },
);

test('a journal that another process has already compacted and deleted counts as done', async () => {
  await using app = await createTestApp({ settings: { ...settings, journalGraceSeconds: 0 } });
  const { stack, update, names } = await journaled(app);
  await ok(cancel(app, stack, update));
  await Promise.all(Array.from({ length: 6 }, () => app.context.compactor.compact(update.id)));
  await until(async () => (await count(app, 'journals')) === 0, 'journal deleted');
  await app.context.compactor.compact(update.id);
  expect([await exportedNames(app, stack), await count(app, 'blobs')]).toEqual([names, 1]);
});

test('a claim from before the clock was set back does not count', async () => {
  await using app = await createTestApp({ settings });
  const { stack, update, names } = await journaled(app);
  await query(
    app,
    `update journals set compaction_claim = gen_random_uuid(), compaction_claimed_until = now() + interval '1 day' where update_id = $1`,
    [update.id],
  );
  await ok(cancel(app, stack, update));
  await app.context.compactor.compact(update.id);
  expect(await exportedNames(app, stack)).toEqual(names);
  expect(await count(app, 'checkpoints')).toBe(1);
});

test('the task does not wait for a journal that another process compacts', async () => {
  await using app = await createTestApp({ settings });
  const claimed = await journaled(app);
  const next = await journaled(app);
  // In this order: the task begins with the one that ended first.
  for (const { update } of [claimed, next]) {
    await expire(app, update.id);
    await endExpiredUpdates(app.context);
  }
  await query(
    app,
    `update journals set compaction_claim = gen_random_uuid(), compaction_claimed_until = clock_timestamp() + interval '14 seconds'
     where update_id = $1`,
    [claimed.update.id],
  );
  await compactEndedUpdates(app.context);
  const rows = await query<{ id: string }>(app, 'select update_id as id from journals where compacted_at is null');
  expect(rows).toEqual([{ id: claimed.update.id }]);
});

/** A process that claims the compaction of a journal and then never finishes. */
function startStuckCompactor(app: TestApp, update: RunningUpdate): ChildProcess {
  const source = (file: string): string => JSON.stringify(path.join(import.meta.dirname, '../../src', file));
  const script = `
    import { createContext } from ${source('shared/context.ts')};
    import { parseConfig } from ${source('shared/platform/config/config.ts')};
    const config = parseConfig(JSON.parse(process.env.SETTINGS));
    const largeReplays = { open: () => new Promise(() => {}) };
    const secrets = { databaseUrl: config.database.url, masterKeys: process.env.KEYS };
    const context = await createContext(config, secrets, { largeReplays });
    setInterval(() => {}, 1_000);
    await context.compactor.compact(${JSON.stringify(update.id)});`;
  const SETTINGS = JSON.stringify({ HOLDFAST_DATABASE_URL: app.database.url, HOLDFAST_DATA_DIR: app.dataDir });
  const env = { PATH: process.env['PATH'], SETTINGS, KEYS: masterKeys };
  return spawn(process.execPath, ['--input-type=module', '-e', script], { env, stdio: 'inherit' });
}

test('the compaction of a killed process is taken over, and no other process compacts while it lives', async () => {
  await using app = await createTestApp({ settings });
  const { stack, update, names } = await journaled(app);
  const stuck = startStuckCompactor(app, update);
  try {
    const claimed = async () => {
      const [row] = await query<{ claim: string | null; until: Date }>(
        app,
        'select compaction_claim as claim, compaction_claimed_until as until from journals where update_id = $1',
        [update.id],
      );
      return row?.claim ? row : null;
    };
    await until(async () => (await claimed()) !== null, 'the process claims the compaction');
    const first = await claimed();
    await expect(app.context.compactor.compact(update.id, false)).rejects.toThrow(JournalClaimedError);
    let ended = false;
    const completing = complete(app, update).finally(() => {
      ended = true;
    });
    await until(async () => Number((await claimed())?.until) > Number(first?.until), 'the claim is renewed');
    expect([(await claimed())?.claim, ended, await count(app, 'checkpoints')]).toEqual([first?.claim, false, 0]);
    stuck.kill('SIGKILL');
    await ok(completing);
    expect([await exportedNames(app, stack), await count(app, 'blobs')]).toEqual([names, 1]);
  } finally {
    stuck.kill('SIGKILL');
  }
});
