import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { createStorageRepository } from '../../src/shared/access/quotas/storage-repository.ts';
import { archiveEvents } from '../../src/workers/events/archive-events.ts';
import { sweepRetention } from '../../src/workers/state/retention/sweep-retention.ts';
import { sweepBlobs } from '../../src/workers/state/sweep-blobs.ts';
import { runAdminCommand } from '../support/admin.ts';
import { insertEndedUpdate, sampleEvent } from '../support/archived-events.ts';
import { query } from '../support/database.ts';
import { encodeAll, importVersion, importVersions, stateOf } from '../support/encode-versions.ts';
import { createStack, ok, type TestStack } from '../support/state.ts';
import { stackId } from '../support/state-index.ts';
import { testApp } from '../support/test-app.ts';
import { rulesPath, setRule } from '../support/update-rules.ts';

const app = testApp({
  settings: {
    ...{ encodeBytesPerSecond: 1_000_000_000_000, HOLDFAST_INLINE_BYTES: '250' },
    ...{ HOLDFAST_BLOB_RETENTION_SECONDS: '1', blobGraceSeconds: 1 },
  },
});

/** Makes everything that has ended one day older, and blobs without references due. */
async function passDay(): Promise<void> {
  await query(app, `update updates set ended_at = ended_at - interval '1 day' where ended_at is not null`);
  await query(app, `update stack_retention set swept_at = swept_at - interval '1 day'`);
}

async function sweep(): Promise<void> {
  await sweepRetention(app.context);
  await query(
    app,
    `update blobs set unreferenced_since = now() - interval '1 hour' where unreferenced_since is not null`,
  );
  await sweepBlobs(app.context);
}

/** Bytes of the files of the blob store. */
async function bytesOnDisk(): Promise<number> {
  const directory = path.join(app.dataDir, 'blobs');
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && !entry.name.startsWith('.'));
  const sizes = await Promise.all(
    files.map(async ({ name, parentPath }) => (await stat(path.join(parentPath, name))).size),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

async function bytesInDatabase(): Promise<number> {
  const [row] = await query<{ bytes: number }>(
    app,
    `select (coalesce((select sum(stored_bytes) from checkpoints where codec <> 'chunks'), 0)
       + coalesce((select sum(stored_bytes) from version_chunks), 0)
       + coalesce((select sum(stored_bytes) from event_segments), 0))::float8 as bytes`,
  );
  return row?.bytes as number;
}

test('over seven days of the same work, what is stored stays the same', async () => {
  const stack = await createStack(app);
  const id = await stackId(app, stack);
  await setRule(app, stack, { kind: 'keep-versions', settings: { days: 1, daily: 3 } });
  await setRule(app, stack, { kind: 'keep-events', settings: { days: 2 } });
  await setRule(app, stack, { kind: 'keep-previews', settings: { days: 2 } });
  const events = Array.from({ length: 40 }, (_, at) => sampleEvent(at));
  const after: { disk: number; database: number; rows: number }[] = [];
  let number = 0;
  for (let day = 0; day < 12; day++) {
    for (let count = 0; count < 4; count++) {
      // Each version has other texts of the same size.
      await importVersion(app, stack, stateOf(60, { 3: `v${++number}`, 40: `w${number}` }));
      await insertEndedUpdate(app, id, events);
    }
    await query(
      app,
      `update updates set ended_at = now() - interval '2 hours' where ended_at > now() - interval '3 hours'`,
    );
    await archiveEvents(app.context);
    await encodeAll(app);
    await passDay();
    await sweep();
    const [{ rows } = { rows: 0 }] = await query<{ rows: number }>(
      app,
      `select (select count(*) from checkpoints)::int + (select count(*) from event_segments)::int
         + (select count(*) from updates where stack_version is null)::int as rows`,
    );
    after.push({ disk: await bytesOnDisk(), database: await bytesInDatabase(), rows });
  }
  const days = after.slice(-7);
  for (const name of ['disk', 'database', 'rows'] as const) {
    const mean = days.reduce((sum, day) => sum + day[name], 0) / days.length;
    expect(mean).toBeGreaterThan(5);
    expect(days.map((day) => day[name]).filter((each) => Math.abs(each / mean - 1) > 0.05)).toEqual([]);
  }
});

async function storageMetrics({ organization }: TestStack): Promise<Record<string, number>> {
  const text = await app.context.metrics.registry.metrics();
  const line = new RegExp(`^holdfast_storage_bytes{organization="${organization}",kind="([\\w-]+)"} (\\d+)$`, 'gm');
  return Object.fromEntries([...text.matchAll(line)].map(([, kind, bytes]) => [kind, Number(bytes)]));
}

test('an estimate is what the rule then frees, and the metric shows what is kept', async () => {
  const stack = await createStack(app);
  const id = await stackId(app, stack);
  await importVersions(app, stack, 9);
  for (let count = 0; count < 3; count++) await insertEndedUpdate(app, id, [sampleEvent(1), sampleEvent(2)]);
  await passDay();
  await archiveEvents(app.context);
  await encodeAll(app);
  const organizationId = (
    await query<{ id: string }>(app, 'select id from organizations where name = $1', [stack.organization])
  )[0]?.id as string;
  await createStorageRepository(app.context.db).measure(organizationId);
  const before = await storageMetrics(stack);
  const [truth] = await query<{ states: number; events: number }>(
    app,
    `select (select sum(stored_bytes) from checkpoints where stack_id = $1 and codec <> 'chunks')::float8
         + (select sum(stored_bytes) from version_chunks where stack_id = $1)::float8 as states,
       (select sum(g.stored_bytes) from event_segments g join updates u on u.id = g.update_id where u.stack_id = $1)::float8 as events`,
    [id],
  );
  expect(before).toEqual({ states: truth?.states, events: truth?.events, journals: 0, 'policy-packs': 0 });

  const rules = [
    { kind: 'keep-versions', settings: { newest: 3 } },
    { kind: 'keep-previews', settings: { days: 1 } },
  ];
  const estimates: { kind: string; count: number; bytes: number }[] = [];
  for (const { kind, settings } of rules) {
    const search = `kind=${kind}&settings=${encodeURIComponent(JSON.stringify(settings))}&project=proj`;
    const { json } = await ok(app.call('GET', `${rulesPath(stack)}/estimate?${search}`, { auth: stack.auth }));
    expect(json).toMatchObject({ kind, isComplete: true, stackCount: 1, heldCount: 0, otherCount: 0 });
    expect(json['stacks']).toEqual([{ project: 'proj', stack: 'dev', count: json['count'], bytes: json['bytes'] }]);
    estimates.push(json as unknown as (typeof estimates)[number]);
  }
  expect(estimates.map(({ count }) => count)).toEqual([6, 3]);
  for (const rule of rules) await setRule(app, stack, rule);
  expect(await sweepRetention(app.context)).toBeGreaterThanOrEqual(9);
  const after = await storageMetrics(stack);
  expect((before['states'] as number) - (after['states'] as number)).toBe(estimates[0]?.bytes);
  expect((before['events'] as number) - (after['events'] as number)).toBe(estimates[1]?.bytes);
  expect(estimates.every(({ bytes }) => bytes > 0)).toBe(true);
});

test('an estimate leaves out stacks that another rule, or a legal hold, keeps', async () => {
  const stack = await createStack(app);
  await importVersions(app, stack, 3);
  await passDay();
  const estimate = async (project?: string) => {
    const search = `kind=keep-versions&settings=%7B%22newest%22%3A1%7D${project === undefined ? '' : `&project=${project}`}`;
    return (await ok(app.call('GET', `${rulesPath(stack)}/estimate?${search}`, { auth: stack.auth }))).json;
  };
  expect(await estimate()).toMatchObject({ count: 2, stackCount: 1 });
  expect(await estimate('other')).toMatchObject({ count: 0, stackCount: 0 });
  await setRule(app, stack, { kind: 'keep-versions', project: 'proj', settings: { newest: 3 } });
  expect(await estimate()).toMatchObject({ count: 0, stackCount: 0, otherCount: 1 });
  // It would replace that rule.
  expect(await estimate('proj')).toMatchObject({ count: 2, stackCount: 1, otherCount: 0 });
  await ok(app.call('PUT', `${stack.path}/legal-hold`, { auth: stack.auth, body: { reason: 'Case 7' } }));
  expect(await estimate('proj')).toMatchObject({ count: 0, stackCount: 1, heldCount: 1 });
});

test('operators estimate rules and hold stacks by commands', async () => {
  const stack = await createStack(app);
  await importVersions(app, stack, 3);
  await passDay();
  const run = async (...args: string[]): Promise<string> => {
    const { code, stderr, stdout } = await runAdminCommand(app, ...args);
    expect([code, stderr]).toEqual([0, expect.anything()]);
    return stdout;
  };
  const at = ['--organization', stack.organization];
  expect(await run('rule', 'estimate', 'keep-versions', 'newest=1', ...at)).toContain('states of versions: 2,');
  expect(await run('hold', 'set', 'proj/dev', ...at, '--reason', 'Case 7')).toContain(
    'of stack proj/dev is deleted any more',
  );
  expect(await run('rule', 'estimate', 'keep-versions', 'newest=1', ...at)).toContain('under a legal hold: 1');
  await run('hold', 'release', 'proj/dev', ...at);
  const log = await query<{ action: string; object: string }>(
    app,
    `select action, object from audit_events where organization = $1 and action in ('stack.hold', 'stack.release') order by occurred_at`,
    [stack.organization],
  );
  expect(log).toEqual([
    { action: 'stack.hold', object: 'proj/dev' },
    { action: 'stack.release', object: 'proj/dev' },
  ]);
});
