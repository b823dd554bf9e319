import { randomUUID } from 'node:crypto';
import { mkdir, readFile, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import type { Command } from 'commander';
import { createWholeProgram, runCommandLine } from '../../src/cli/command-line.ts';
import { commandsOfFencedSite, pathOf } from '../../src/cli/fenced-site.ts';
import { readSmall } from '../../src/shared/backup/stored-bytes.ts';
import { createBackgroundTaskRepository } from '../../src/shared/platform/background-tasks/background-task-repository.ts';
import { once } from '../../src/shared/platform/blobs/blob-streams.ts';
import { MeteredBlobStore } from '../../src/shared/platform/blobs/metered-blob-store.ts';
import { Lifecycle } from '../../src/shared/platform/lifecycle/lifecycle.ts';
import { startHeartbeat } from '../../src/shared/platform/processes/heartbeat.ts';
import { fencedBy, ReadOnlyMode } from '../../src/shared/platform/read-only/read-only-mode.ts';
import { createMetrics } from '../../src/shared/platform/telemetry/metrics.ts';
import { startWebhooks } from '../../src/shared/webhooks/delivery-loop.ts';
import { startBackgroundTasks } from '../../src/workers/background-tasks.ts';
import { startBackgroundTask } from '../../src/workers/platform/background-task.ts';
import { createJobHandlers } from '../../src/workers/platform/job-handlers.ts';
import { startIndexing } from '../../src/workers/search/index-states.ts';
import { startScrub } from '../../src/workers/state/scrub-loop.ts';
import { runAdminCommand } from '../support/admin.ts';
import { changedTables, readTables } from '../support/changed-tables.ts';
import { query } from '../support/database.ts';
import { createStack, ok, startUpdate } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { complete, saveState } from '../support/update-calls.ts';

// Another site has taken over. Here, nothing changes rows or stores any more.

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({ settings: { sweepSeconds: 1 } });
});
afterAll(() => app[Symbol.asyncDispose]());

const fence = () => query(app, 'update installation set fenced_since = now()');
const unfence = () => query(app, 'update installation set fenced_since = null, outgoing_held_since = null');

/** Words that a command needs to get as far as its database. */
const words: Readonly<Record<string, readonly string[]>> = {
  'backup prune': ['--from', 'x', '--keep', '1'],
  'admin create-user': ['x', '--organization', 'x'],
  'admin token create': ['x', '--organization', 'x', '--service'],
  'admin deleted restore': ['00000000-0000-4000-8000-000000000000', '--organization', 'x'],
  'admin deleted purge': ['00000000-0000-4000-8000-000000000000', '--organization', 'x'],
};

/** It reads a password before it opens the database, as all commands about people do. */
const notRun = ['admin user set-password'];

/** They run at a site that was replaced. A command is added here once it is clear that it changes neither rows nor stores of the other site. */
const runningHere = [
  ...['server', 'api', 'worker', 'setup', 'doctor', 'support-bundle', 'create-bucket', 'migrate', 'upgrade-database'],
  ...['completion', 'top', 'wait', 'approve', 'drain', 'import', 'export', 'plan', 'apply', 'export-config', 'schema'],
  ...['list', 'log-level', 'cpu-profile', 'heap-snapshot'].map((name) => `debug ${name}`),
  ...[
    'list',
    'token list',
    'token max-days',
    'team list',
    'grant list',
    'issuer list',
    'rule list',
    'rule estimate',
  ].map((name) => `admin ${name}`),
  ...['approvals', 'quotas', 'check-keys', 'audit verify', 'journal', 'deleted list', 'read-only status', 'fsck'].map(
    (name) => `admin ${name}`,
  ),
  ...['after-restore', 'take-over', 'site status', 'site promote', 'site demote'].map((name) => `admin ${name}`),
  ...['backup create', 'backup list', 'backup verify', 'backup restore', 'blobs status'],
  ...['bundle status', 'bundle return'],
];

const leaves = (command: Command): Command[] =>
  command.commands.length === 0 ? [command] : command.commands.flatMap(leaves);

const refused = /^holdfast: Another site has taken over/m;

function wordsOf(command: Command): string[] {
  const path = pathOf(command);
  const given = words[path] ?? [
    ...command.registeredArguments
      .filter(({ required }) => required)
      .map((argument) => argument.argChoices?.[0] ?? 'x/y/z'),
    ...command.options
      .filter(({ mandatory }) => mandatory)
      .flatMap(({ long, required }) => [String(long), ...(required ? ['x'] : [])]),
  ];
  return [...path.split(' '), ...given];
}

/** Marks the store as that of a site that was promoted later, while `run` runs. */
async function whileMarked(run: () => Promise<void>): Promise<void> {
  const [row] = await query<{ id: string }>(app, 'select id from installation');
  const [main] = app.context.siteStores;
  if (!main) throw new Error('there is no store');
  await main.store.put(`sites/${row?.id}`, once(Buffer.from('9 00000000-0000-4000-8000-000000000000\n')));
  try {
    await run();
  } finally {
    await main.store.delete(`sites/${row?.id}`);
    await unfence();
  }
}

test('each command that writes is refused, even before its servers noticed, and each other one is listed', async () => {
  const program = await createWholeProgram({ loadConfig: () => app.context.config, exitCode: 0 });
  const all = leaves(program);
  const names = all.map(pathOf);
  expect(names.length).toBeGreaterThan(80);
  expect(Object.keys(commandsOfFencedSite).filter((name) => !names.includes(name))).toEqual([]);
  expect(Object.keys(commandsOfFencedSite).sort()).toEqual([...runningHere].sort());
  const accepted: string[] = [];
  const leftover = path.join(app.dataDir, 'blobs/unfinished/leftover.part');
  await writeFile(leftover, 'x');
  await utimes(leftover, 0, 0);
  const before = await readTables(app);
  await whileMarked(async () => {
    for (const command of all) {
      if (commandsOfFencedSite[pathOf(command)] || notRun.includes(pathOf(command))) continue;
      // The command before has noted it in the database.
      await unfence();
      const { code, stderr } = await run(wordsOf(command));
      if (code !== 1 || !refused.test(stderr)) accepted.push(`${wordsOf(command).join(' ')}: ${code} ${stderr}`);
    }
  });
  expect(accepted).toEqual([]);
  // None has prepared a store or noted its master key before it asked.
  expect(await changedTables(app, before)).toEqual(['audit_events', 'installation']);
  expect(await readFile(leftover, 'utf8')).toBe('x');
  await fence();
  expect(await run(['admin', 'deactivate-user', 'x'])).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(refused),
  });
  await unfence();
});

async function run(given: readonly string[]): Promise<{ code: number | undefined; stderr: string }> {
  const lines: string[] = [];
  const { error, log } = console;
  console.error = (line: unknown) => lines.push(String(line));
  console.log = () => {};
  try {
    const { config } = app.context;
    const database = { ...config.database, url: app.database.url };
    const code = await runCommandLine(given, () => ({
      ...config,
      database,
      secrets: { ...config.secrets, masterKeys: `k1:${Buffer.alloc(32, 1).toString('base64')}` },
      startWaitMs: 1_000,
      logLevel: 'fatal',
    }));
    return { code, stderr: lines.join('\n') };
  } finally {
    Object.assign(console, { error, log });
  }
}

test('commands that only look record nothing, and lock nobody', async () => {
  const stack = await createStack(app);
  const { organization } = stack;
  await startUpdate(app, stack);
  const folder = path.join(app.dataDir, 'looked-at');
  await mkdir(path.join(folder, '.pulumi/stacks/proj'), { recursive: true });
  const latest = { manifest: { time: '2026-01-01T00:00:00Z', magic: '', version: '' }, resources: [] };
  const state = { version: 3, checkpoint: { stack: 'organization/proj/other', latest } };
  await writeFile(path.join(folder, '.pulumi/meta.yaml'), 'version: 1\n');
  await writeFile(path.join(folder, '.pulumi/stacks/proj/other.json'), JSON.stringify(state));
  await query(app, `update updates set expires_at = now() - interval '1 hour' where status = 'running'`);
  await fence();
  const before = await readTables(app);
  const preview = ['admin', 'token', 'max-days', '7', '--organization', organization, '--preview'];
  expect(await run(preview)).toEqual({ code: 0, stderr: '' });
  const { code, stderr } = await run([
    'import',
    '--from',
    `file://${folder}`,
    '--organization',
    organization,
    '--verify',
  ]);
  // The stack is not here.
  expect([code, stderr]).toEqual([1, expect.not.stringContaining('holdfast:')]);
  expect(await changedTables(app, before)).toEqual([]);
  await unfence();
});

test.each([
  ['admin fsck', ['--fix']],
  ['admin fsck', []],
  ['backup create', ['--to', '/nowhere', '--keep', '1']],
  ['import', ['file:///nowhere', '--organization', 'x', '--apply']],
])('%s %j', async (path, options) => {
  const command = leaves(await createWholeProgram({ loadConfig: () => app.context.config, exitCode: 0 })).find(
    (each) => pathOf(each) === path,
  );
  command?.parseOptions([...options]);
  const isAllowed = commandsOfFencedSite[path]?.(command?.opts() ?? {});
  expect(isAllowed).toBe(options.length === 0);
});

test('fsck repairs nothing at a site that has not yet noticed that another one was promoted', async () => {
  await whileMarked(async () => {
    expect(await runAdminCommand(app, 'fsck')).toMatchObject({ code: 0 });
    for (const command of [['fsck', '--fix'], ['scrub'], ['reconcile']]) {
      await unfence();
      const { code, stderr } = await runAdminCommand(app, ...command);
      expect({ command, code, isRefused: refused.test(stderr) }).toEqual({ command, code: 1, isRefused: true });
    }
    expect(await query(app, `select 1 from audit_events where action = 'installation.repair'`)).toEqual([]);
  });
});

test('a database restored to before a take-over says how it becomes the writing one, and sends nothing until the end', async () => {
  await unfence();
  const admin = (...given: string[]) => runAdminCommand(app, ...given);
  expect(await admin('take-over')).toMatchObject({ code: 0 });
  const [point] = await query<{ id: string; term: number }>(
    app,
    'select site_id as id, site_term as term from installation',
  );
  expect(await admin('take-over')).toMatchObject({ code: 0 });
  await query(app, `update installation set site_term = ${point?.term}, site_id = '${point?.id}'`);
  const { code, stderr } = await admin('reconcile');
  expect(code).toBe(1);
  expect(stderr).toMatch(/restored to a point before a take-over.*`holdfast admin take-over`/);
  for (const command of ['take-over', 'reconcile', 'after-restore'])
    expect({ command, ...(await admin(command)) }).toMatchObject({ command, code: 0 });
  expect(await query(app, 'select 1 from installation where outgoing_held_since is not null')).toHaveLength(1);
  await unfence();
});

/** Counts how often work asks whether it may begin. */
class AskedMode extends ReadOnlyMode {
  asked = 0;

  override get isFenced(): boolean {
    this.asked++;
    return super.isFenced;
  }
}

const started: Lifecycle[] = [];
afterEach(async () => {
  for (const lifecycle of started.splice(0)) await lifecycle.close();
});

/** The context of a site that another one has replaced, or of one that has not been. */
function contextOf(isFenced: boolean) {
  const readOnly = new AskedMode();
  const lifecycle = new Lifecycle(app.context.logger, app.context.config);
  started.push(lifecycle);
  if (isFenced) readOnly.remember(fencedBy(new Date()));
  const done: string[] = [];
  const counted = <F extends (...args: never[]) => unknown>(name: string, run: F): F =>
    ((...args: Parameters<F>) => {
      done.push(name);
      return run(...args);
    }) as F;
  const { documentChecks } = app.context;
  const context = {
    ...app.context,
    lifecycle,
    readOnly,
    metrics: createMetrics(),
    documentChecks: { ...documentChecks, claim: counted('scrub', documentChecks.claim) },
  };
  return { context, done, counted };
}

test('no task begins, and no document is scrubbed', async () => {
  const runs = createBackgroundTaskRepository(app.context.db);
  const [fenced, own] = [contextOf(true), contextOf(false)];
  for (const [name, { context, counted, done }] of Object.entries({ fenced, own })) {
    const run = counted('task', async () => done.length);
    const stop = startBackgroundTask(context, runs, randomUUID(), { name: `test-${name}`, everySeconds: 0, run });
    context.lifecycle.onClose('work', name, stop);
    startScrub(context);
  }
  const countOf = (name: string): number => own.done.filter((each) => each === name).length;
  await until(() => countOf('task') >= 2 && countOf('scrub') >= 2, 'the other site works');
  expect(fenced.done).toEqual([]);
});

test('what runs in the background writes nothing but that its process is alive', async () => {
  const stack = await createStack(app);
  const update = await startUpdate(app, stack);
  await ok(saveState(app, update, 3));
  await ok(complete(app, update));
  const run = ({ context }: ReturnType<typeof contextOf>): void => {
    startHeartbeat(context, 'worker');
    startBackgroundTasks(context);
    startScrub(context);
    startIndexing(context);
    startWebhooks(context, 'all');
  };
  const [fenced, own] = [contextOf(true), contextOf(false)];
  const before = await readTables(app);
  run(fenced);
  // About five rounds of all tasks, and one of the scrub.
  await until(() => fenced.context.readOnly.asked >= 200, 'all work has asked');
  expect(await changedTables(app, before)).toEqual(['processes']);
  run(own);
  await until(async () => {
    const changed = await changedTables(app, before);
    return changed.includes('maintenance_runs') && changed.includes('state_indexes');
  }, 'the other site works');
});

test('what runs ends, jobs are refused, and the store is only read', async () => {
  const { context } = contextOf(false);
  const { readOnly } = context;
  const isEnded = Promise.withResolvers<void>();
  const run = (signal: AbortSignal): Promise<void> => {
    signal.addEventListener('abort', () => isEnded.resolve(), { once: true });
    return isEnded.promise;
  };
  const runs = createBackgroundTaskRepository(app.context.db);
  const stop = startBackgroundTask(context, runs, randomUUID(), { name: 'test-running', everySeconds: 0, run });
  context.lifecycle.onClose('work', 'test-running', stop);
  await until(
    async () => (await query(app, "select 1 from maintenance_runs where name = 'test-running'")).length > 0,
    'it runs',
  );
  readOnly.remember(fencedBy(new Date()));
  await isEnded.promise;

  const handlers = createJobHandlers(context as never, context);
  expect(Object.keys(handlers).length).toBeGreaterThan(5);
  for (const handle of Object.values(handlers))
    await expect(handle({} as never, null)).rejects.toMatchObject({ code: 'read-only' });

  const store = new MeteredBlobStore(app.context.blobs, app.context.metrics, () => readOnly.assertNotFenced());
  readOnly.remember(null);
  await store.put('checkpoints/aa/x', once(Buffer.from('x')));
  readOnly.remember(fencedBy(new Date()));
  await expect(store.put('checkpoints/aa/y', once(Buffer.from('y')))).rejects.toMatchObject({ status: 503 });
  await expect(store.delete('checkpoints/aa/x')).rejects.toMatchObject({ code: 'read-only' });
  await expect(store.sweepUnfinished(0, [])).rejects.toMatchObject({ code: 'read-only' });
  expect(await readSmall(store, 'checkpoints/aa/x')).toEqual(Buffer.from('x'));
});
