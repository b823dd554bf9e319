import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Command } from 'commander';
import { createWholeProgram, runCommandLine } from '../../src/cli/command-line.ts';
import { commandsOfFencedSite, pathOf } from '../../src/cli/fenced-site.ts';
import { once } from '../../src/shared/platform/blobs/blob-streams.ts';
import { startScheduledTasks } from '../../src/workers/scheduled-tasks.ts';
import { runAdminCommand } from '../support/admin.ts';
import { query } from '../support/database.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';

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

test('no task begins', async () => {
  await query(app, 'delete from maintenance_runs');
  app.context.readOnly.remember({ since: new Date(), reason: 'another site has taken over', isFenced: true });
  startScheduledTasks(app.context);
  const until = performance.now() + 3_500;
  while (performance.now() < until) await new Promise((resolve) => setTimeout(resolve, 100));
  expect(await query(app, 'select name from maintenance_runs')).toEqual([]);
  app.context.readOnly.remember(null);
});
