import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createBackgroundTaskRepository } from '../../src/shared/platform/background-tasks/background-task-repository.ts';
import type { BlobStore } from '../../src/shared/platform/blobs/blob-store.ts';
import { startBackgroundTasks } from '../../src/workers/background-tasks.ts';
import { startBackgroundTask } from '../../src/workers/platform/background-task.ts';
import { watchClock } from '../../src/workers/platform/clock-watch.ts';
import { query } from '../support/database.ts';
import { expireLeases } from '../support/expire-leases.ts';
import { creation } from '../support/journal-entries.ts';
import { openLateBlobs } from '../support/late-blobs.ts';
import { exportedNames } from '../support/stack-state.ts';
import { createStack, ok, startUpdate } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, expire, getUpdate, saveState } from '../support/update-calls.ts';

const directory = mkdtempSync(path.join(tmpdir(), 'holdfast-maintenance-'));
/** Deletions wait while it is set. */
let deletions: PromiseWithResolvers<void> | null = null;
let app: TestApp;
beforeAll(async () => {
  const { blobs } = await openLateBlobs(directory);
  const gated: BlobStore = {
    ...blobs,
    delete: async (key) => {
      await deletions?.promise;
      await blobs.delete(key);
    },
  };
  app = await createTestApp({
    settings: {
      HOLDFAST_INLINE_BYTES: '1',
      sweepSeconds: 1,
      blobGraceSeconds: 1,
      HOLDFAST_BLOB_RETENTION_SECONDS: '1',
      reconcileSeconds: 3600,
      journalGraceSeconds: 0,
    },
    overrides: { blobs: gated },
  });
});
afterAll(async () => {
  await app[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});

const one = '11111111-1111-4111-8111-111111111111';
const two = '22222222-2222-4222-8222-222222222222';
const times = { claimSeconds: 30, everySeconds: 10 };

describe('a claim', () => {
  beforeEach(() => query(app, 'truncate maintenance_runs'));
  const runs = () => createBackgroundTaskRepository(app.context.db);

  test('belongs to one process until it is released and due again', async () => {
    const claims = await Promise.all([one, two].map((holder) => runs().claim('x', holder, times)));
    expect(claims.filter((claim) => claim !== null)).toHaveLength(1);
    const [holder, other] = claims[0] ? [one, two] : [two, one];
    expect(await runs().claim('x', other, { ...times, everySeconds: 0 })).toBeNull();
    expect([await runs().renew('x', holder, 30), await runs().renew('x', other, 30)]).toEqual([true, false]);
    await runs().release('x', holder);
    expect(await runs().claim('x', other, times)).toBeNull();
    expect(await runs().claim('x', other, { ...times, everySeconds: 0 })).not.toBeNull();
  });

  test('of a task that failed is due again after ten minutes, however rarely the task runs', async () => {
    const daily = { ...times, everySeconds: 86_400 };
    for (const [failed, minutes, isDue] of [
      [true, 8, false],
      [true, 10, true],
      [false, 10, false],
    ] as const) {
      await query(app, 'truncate maintenance_runs');
      expect(await runs().claim('x', one, daily)).not.toBeNull();
      await (failed ? runs().releaseFailed('x', one, 'no disk') : runs().release('x', one));
      await query(
        app,
        `update maintenance_runs set last_started_at = clock_timestamp() - interval '${minutes} minutes'`,
      );
      expect((await runs().claim('x', two, daily)) !== null).toBe(isDue);
    }
  });

  test('of a task whose runs end with their processes waits for its time', async () => {
    const daily = { ...times, everySeconds: 86_400 };
    const killed = (ago: string) =>
      query(
        app,
        `update maintenance_runs set claimed_until = clock_timestamp() - interval '1 second', last_started_at = clock_timestamp() - $1::interval`,
        [ago],
      );
    for (const holder of [one, two, one, two]) {
      expect(await runs().claim('x', holder, daily)).not.toBeNull();
      await killed('20 minutes');
      expect(await runs().claim('x', holder, daily)).toBeNull();
      await killed('25 hours');
    }
    expect((await runs().list()).map(({ failedAt }) => failedAt !== null)).toEqual([true]);
    // One after a reported failure is repeated soon, the next one not.
    await runs().claim('x', one, daily);
    await runs().releaseFailed('x', one, 'no disk');
    await killed('20 minutes');
    expect(await runs().claim('x', two, daily)).not.toBeNull();
    await killed('20 minutes');
    expect(await runs().claim('x', one, daily)).not.toBeNull();
    await killed('20 minutes');
    expect(await runs().claim('x', two, daily)).toBeNull();
  });

  test('of a task that failed shows the failure until no process has had the task for a day', async () => {
    const failures = async () => (await runs().list()).map(({ failedAt }) => failedAt !== null);
    const ago = (interval: string) =>
      query(app, `update maintenance_runs set failed_at = clock_timestamp() - interval '${interval}'`);
    expect(await runs().claim('x', one, times)).not.toBeNull();
    await runs().releaseFailed('x', one, 'no disk');
    expect(await failures()).toEqual([true]);
    await ago('23 hours');
    expect(await failures()).toEqual([true]);
    await ago('25 hours');
    expect(await failures()).toEqual([false]);
    // It may run for days.
    await runs().claim('x', one, { ...times, everySeconds: 0 });
    expect(await failures()).toEqual([true]);
  });

  test('of a dead process expires, and one from before the clock was set back expires at once', async () => {
    for (const until of [`- interval '1 second'`, `+ interval '1 day'`]) {
      await query(
        app,
        `insert into maintenance_runs (name, claimed_by, claimed_until, last_started_at)
         values ('x', $1, clock_timestamp() ${until}, clock_timestamp() ${until} - interval '1 minute')
         on conflict (name) do update set claimed_by = excluded.claimed_by, claimed_until = excluded.claimed_until,
           last_started_at = excluded.last_started_at`,
        [one],
      );
      expect(await runs().claim('x', two, times)).not.toBeNull();
      expect(await runs().savePosition('x', one, '{}')).toBe(false);
    }
  });

  test('of a run that ended with its process shows a failure from the second time on, until one is done', async () => {
    const shown = async () => (await runs().list()).map(({ error, failedAt }) => [error, failedAt !== null]);
    const killed = () =>
      query(app, `update maintenance_runs set claimed_until = clock_timestamp() - interval '1 second'`);
    const claim = (holder: string) => runs().claim('x', holder, { ...times, everySeconds: 0 });
    await claim(one);
    await killed();
    expect(await claim(two)).not.toBeNull();
    expect(await shown()).toEqual([['The run was interrupted', false]]);
    await killed();
    await claim(one);
    await killed();
    expect(await shown()).toEqual([['The run was interrupted', true]]);
    await claim(two);
    await runs().release('x', two);
    expect(await shown()).toEqual([[null, false]]);
    await claim(one);
    await killed();
    await claim(two);
    expect(await shown()).toEqual([['The run was interrupted', false]]);
  });

  test('of a run that records a position is handed on at once', async () => {
    await runs().claim('x', one, times);
    expect(await runs().savePosition('x', one, '{"at":1}')).toBe(true);
    await runs().release('x', one);
    expect(await runs().claim('x', two, times)).toEqual({ position: '{"at":1}' });
    await runs().saveResult('x', '{"found":2}');
    await runs().release('x', two);
    expect(await runs().claim('x', one, times)).toBeNull();
    expect(await runs().findResult('x')).toBe('{"found":2}');
  });

  test('is made although what each process observes cannot be read', async () => {
    let done = 0;
    const kind = {
      name: 'observed',
      observe: () => Promise.reject(new Error('It cannot be read')),
      run: async () => ++done,
    };
    const stop = startBackgroundTask(app.context, runs(), one, kind);
    await until(() => done > 0, 'a run');
    await stop();
    expect(await query(app, 'select failed_at from maintenance_runs')).toEqual([{ failed_at: null }]);
  });

  test('keeps a slow run the only one, in its own process and in others', async () => {
    const gate = Promise.withResolvers<void>();
    let running = 0;
    let most = 0;
    let done = 0;
    const kind = {
      name: 'slow',
      run: async () => {
        most = Math.max(most, ++running);
        await gate.promise;
        running--;
        done++;
      },
    };
    // Each asks every second whether it may run.
    const asked: string[] = [];
    const repository = runs();
    const counting = {
      ...repository,
      claim: (...args: Parameters<typeof repository.claim>) => {
        asked.push(args[1]);
        return repository.claim(...args);
      },
    };
    const stops = [one, two].map((holder) => startBackgroundTask(app.context, counting, holder, kind));
    await until(() => asked.filter((holder) => holder === asked[0]).length >= 1 && asked.length >= 4, 'four turns');
    expect([running, most]).toEqual([1, 1]);
    gate.resolve();
    await until(() => done >= 3, 'more runs');
    await Promise.all(stops.map((stop) => stop()));
    expect(most).toBe(1);
  });
});

test('what deletes by age is left out in a restored database until it takes over', async () => {
  await query(app, 'truncate maintenance_runs');
  await query(app, 'update installation set outgoing_held_since = now()');
  const runs = createBackgroundTaskRepository(app.context.db);
  const ran = { byAge: 0, otherwise: 0 };
  const stops = [
    { name: 'test-age', everySeconds: 0, deletesByAge: true, run: async () => void ran.byAge++ },
    { name: 'test-other', everySeconds: 0, run: async () => void ran.otherwise++ },
  ].map((kind) => startBackgroundTask(app.context, runs, one, kind));
  try {
    await until(() => ran.otherwise >= 3, 'rounds of another task');
    expect(ran.byAge).toBe(0);
    await query(app, 'update installation set outgoing_held_since = null');
    await until(() => ran.byAge > 0, 'a run');
  } finally {
    await Promise.all(stops.map((stop) => stop()));
  }
});

test('what deletes by age is left out while the clock of Postgres may be far ahead, and the log says so once', async () => {
  await query(app, 'truncate maintenance_runs');
  const repository = createBackgroundTaskRepository(app.context.db);
  let aheadMs = 0;
  const runs = {
    ...repository,
    findResultNow: async (name: string) => {
      const found = await repository.findResultNow(name);
      return { ...found, now: found.now + aheadMs };
    },
  };
  const warnings: string[] = [];
  const logger = { warn: (_: object, message: string) => void warnings.push(message) };
  const ran = { byAge: 0, otherwise: 0 };
  const stops = [
    { name: 'test-age', everySeconds: 0, deletesByAge: true, run: async () => void ran.byAge++ },
    { name: 'test-other', everySeconds: 0, run: async () => void ran.otherwise++ },
    { ...watchClock(runs, logger), everySeconds: 0 },
  ].map((kind) => startBackgroundTask(app.context, runs, one, kind));
  const seenAt = async () => JSON.parse((await runs.findResult('watch-clock')) ?? '{"seenAt":0}').seenAt as number;
  const untilRoundsOf = async (rounds: number) => {
    const enough = ran.otherwise + rounds;
    await until(() => ran.otherwise >= enough, 'rounds of another task');
  };
  try {
    await until(async () => ran.byAge > 0 && (await seenAt()) > 0, 'a run');
    aheadMs = 8 * 86_400_000;
    await until(async () => (await seenAt()) > Date.now() + 86_400_000, 'the clock is looked at');
    // One may have begun before.
    await untilRoundsOf(1);
    const before = ran.byAge;
    await untilRoundsOf(3);
    expect(ran.byAge).toBe(before);
    expect(warnings).toEqual([expect.stringMatching(/nothing is deleted by age for 8 minutes$/)]);
    expect((await runs.list()).filter(({ failedAt }) => failedAt !== null)).toEqual([]);
    aheadMs = 0;
    await until(() => ran.byAge > before, 'a run after the correction');
    expect(warnings).toHaveLength(1);
  } finally {
    await Promise.all(stops.map((stop) => stop()));
  }
});

test('while the clock may be ahead, nothing is forgotten that prevents a second exchange of an id token or a second run of a job', async () => {
  await using other = await createTestApp({ settings: { sweepSeconds: 1 } });
  await query(
    other,
    `insert into maintenance_runs (name, result) values ('watch-clock', json_build_object(
       'seenAt', floor(extract(epoch from now()) * 1000), 'heldUntil', floor(extract(epoch from now()) * 1000) + 420000)::text)`,
  );
  startBackgroundTasks(other.context);
  const run = async () =>
    (await query<{ name: string }>(other, 'select name from maintenance_runs')).map(({ name }) => name);
  await until(async () => {
    const names = await run();
    return ['sweep-lock-queue', 'sweep-projects', 'measure-storage'].every((name) => names.includes(name));
  }, 'later tasks have run');
  const names = await run();
  expect(
    ['retention', 'sweep-admissions', 'sweep-job-results', 'sweep-exchanges'].filter((name) => names.includes(name)),
  ).toEqual([]);
});

test('a hanging blob sweep delays neither expired leases, nor compactions, nor the reconciling job', async () => {
  const stack = await createStack(app);
  const update = await startUpdate(app, stack, { journal: true });
  await ok(append(app, update, creation(1, 'kept', stack)));
  deletions = Promise.withResolvers();
  try {
    await app.context.blobRows.insert('checkpoints/aa/superseded', null);
    await query(
      app,
      `update blobs set unreferenced_since = now() - interval '1 day' where unreferenced_since is not null`,
    );
    startBackgroundTasks(app.context);
    const isPendingDeletion = async () =>
      (await query(app, 'select 1 from blobs where pending_deletion_since is not null')).length > 0;
    await until(isPendingDeletion, 'the sweep hangs');
    await expire(app, update.id);
    await until(async () => (await getUpdate(app, stack, update)).status !== 'running', 'the lease is ended');
    const hasJournal = async () =>
      (await query(app, 'select 1 from journals where update_id = $1', [update.id])).length > 0;
    await until(async () => !(await hasJournal()), 'the journal is compacted');
    const reconciled = () => createBackgroundTaskRepository(app.context.db).findResult('reconcile');
    await until(async () => (await reconciled()) !== null, 'store and database are compared');
  } finally {
    deletions.resolve();
    deletions = null;
  }
  await until(
    async () => (await query(app, 'select 1 from blobs where pending_deletion_since is not null')).length === 0,
    'swept',
  );
  expect(await exportedNames(app, stack)).toEqual(['kept']);
});

describe('journals that cannot be compacted', () => {
  test('do not delay others and are retried with growing pauses', async () => {
    await using other = await createTestApp({
      settings: { HOLDFAST_INLINE_BYTES: '1', journalGraceSeconds: 0 },
    });
    const first = await startUpdate(other, await createStack(other));
    await ok(saveState(other, first, 1));
    // Their base is lost; all of them ended before the valid one.
    await query(
      other,
      `with lost as (
         insert into blobs (key) values ('checkpoints/aa/lost') returning key
       ), base as (
         insert into checkpoints (stack_id, sha256, size_bytes, stored_bytes, codec, resource_count, blob_key)
         select stack_id, '', 1, 1, 'zstd', 0, (select key from lost) from updates where id = $1 returning id, stack_id
       ), broken as (
         insert into updates (stack_id, kind, exclusive, status, expires_at, ended_at, journal_version, base_checkpoint_id)
         select stack_id, 'update', false, 'cancelled', now(), now() - interval '1 day', 1, base.id
         from base, generate_series(1, 110) returning id, stack_id
       ), entries as (
         insert into journal_entries (update_id, sequence_id, entry) select id, 1, '{}' from broken
       )
       insert into journals (update_id, stack_id, entry_count, ended_at)
       select id, stack_id, 1, now() - interval '1 day' from broken`,
      [first.id],
    );
    const stack = await createStack(other);
    const sound = await startUpdate(other, stack, { journal: true });
    await ok(append(other, sound, creation(1, 'kept', stack)));
    await expire(other, sound.id);
    await expireLeases(other.context);
    expect(await exportedNames(other, stack)).toEqual(['kept']);
    expect(await query(other, 'select 1 from journals where update_id = $1', [sound.id])).toEqual([]);

    const tried = () =>
      query(
        other,
        'select compaction_attempts, count(*)::int from journals group by compaction_attempts order by compaction_attempts',
      );
    expect(await tried()).toEqual([{ compaction_attempts: 1, count: 110 }]);
    const postponed = await other.context.metrics.tasksPostponed.get();
    expect(postponed.values).toEqual([{ labels: { name: 'compact-journals' }, value: 110 }]);
    await expireLeases(other.context);
    expect(await tried()).toEqual([{ compaction_attempts: 1, count: 110 }]);
    for (const minutes of [1, 2]) {
      await query(other, `update journals set next_compaction_at = next_compaction_at - make_interval(mins => $1)`, [
        minutes,
      ]);
      await expireLeases(other.context);
    }
    const pauses = await query(
      other,
      `select min(next_compaction_at) > now() + interval '1 minute' as grown from journals`,
    );
    expect([await tried(), pauses]).toEqual([[{ compaction_attempts: 3, count: 110 }], [{ grown: true }]]);
  });
});
