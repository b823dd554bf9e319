import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Command } from 'commander';
import { createWholeProgram, runCommandLine } from '../../src/cli/command-line.ts';
import { commandsOfFencedSite, pathOf } from '../../src/cli/fenced-site.ts';
import { once } from '../../src/shared/platform/blobs/blob-streams.ts';
import { createScheduledTaskRepository } from '../../src/shared/platform/maintenance/scheduled-task-repository.ts';
import { fencedBy, ReadOnlyMode } from '../../src/shared/platform/read-only/read-only-mode.ts';
import { createMetrics } from '../../src/shared/platform/telemetry/metrics.ts';
import { startMaintenance } from '../../src/workers/platform/maintenance.ts';
import { startScrub } from '../../src/workers/state/scrub-loop.ts';
import { runAdminCommand } from '../support/admin.ts';
import { query } from '../support/database.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';

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
  'admin create-user': ['x', '--organization', 'x'],
  'admin token create': ['x', '--organization', 'x', '--service'],
  'admin deleted restore': ['00000000-0000-4000-8000-000000000000', '--organization', 'x'],
  'admin deleted purge': ['00000000-0000-4000-8000-000000000000', '--organization', 'x'],
};

/** It reads a password before it opens the database, as all commands about people do. */
const notRun = ['admin user set-password'];

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

test('each command that writes is refused, and each other one is listed', async () => {
  await fence();
  const program = await createWholeProgram({ loadConfig: () => app.context.config, exitCode: 0 });
  const all = leaves(program);
  const names = all.map(pathOf);
  expect(names.length).toBeGreaterThan(80);
  expect(Object.keys(commandsOfFencedSite).filter((name) => !names.includes(name))).toEqual([]);
  const accepted: string[] = [];
  for (const command of all) {
    if (commandsOfFencedSite[pathOf(command)] || notRun.includes(pathOf(command))) continue;
    const { code, stderr } = await run(wordsOf(command));
    if (code !== 1 || !refused.test(stderr)) accepted.push(`${wordsOf(command).join(' ')}: ${code} ${stderr}`);
  }
  expect(accepted).toEqual([]);
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
    }));
    return { code, stderr: lines.join('\n') };
  } finally {
    Object.assign(console, { error, log });
  }
}

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
  await unfence();
  const [row] = await query<{ id: string }>(app, 'select id from installation');
  const mark = '9 00000000-0000-4000-8000-000000000000\n';
  await app.context.blobs.put(`sites/${row?.id}`, once(Buffer.from(mark)));
  try {
    expect(await runAdminCommand(app, 'fsck')).toMatchObject({ code: 0 });
    for (const command of [['fsck', '--fix'], ['scrub'], ['reconcile']]) {
      await unfence();
      const { code, stderr } = await runAdminCommand(app, ...command);
      expect({ command, code, isRefused: refused.test(stderr) }).toEqual({ command, code: 1, isRefused: true });
    }
    expect(await query(app, `select 1 from audit_events where action = 'installation.repair'`)).toEqual([]);
  } finally {
    await app.context.blobs.delete(`sites/${row?.id}`);
    await unfence();
  }
});

/** The context of a site that another one has replaced, or of one that has not been. */
function contextOf(isFenced: boolean) {
  const readOnly = new ReadOnlyMode();
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
    readOnly,
    metrics: createMetrics(),
    documentChecks: { ...documentChecks, claim: counted('scrub', documentChecks.claim) },
  };
  return { context, done, counted };
}

test('no task begins, and no document is scrubbed', async () => {
  const runs = createScheduledTaskRepository(app.context.db);
  const [fenced, own] = [contextOf(true), contextOf(false)];
  for (const [name, { context, counted, done }] of Object.entries({ fenced, own })) {
    const run = counted('task', async () => done.length);
    const stop = startMaintenance(context, runs, randomUUID(), { name: `test-${name}`, everySeconds: 0, run });
    app.context.lifecycle.onClose('work', name, stop);
    startScrub(context);
  }
  const countOf = (name: string): number => own.done.filter((each) => each === name).length;
  await until(() => countOf('task') >= 2 && countOf('scrub') >= 2, 'the other site works');
  expect(fenced.done).toEqual([]);
});
