import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { generateIdentity, identityToRecipient } from 'age-encryption';
import type { Command } from 'commander';
import { createWholeProgram } from '../../src/cli/command-line.ts';
import { outputs } from '../../src/cli/output/outputs.ts';
import { runInProcess } from '../support/admin.ts';
import { assertOutput } from '../support/outputs.ts';
import { createStack, deployment, ok } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';

const app = testApp();
const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-json-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const organization = 'acme-json';
const inOrganization = ['--organization', organization];
const commit = 'a'.repeat(40);

/** Commands that say in a sentence what they have done; a script has their exit code. */
const changes = [
  ...['accept', 'add-member', 'after-restore', 'approve', 'create-organization', 'create-user', 'deactivate-user'],
  ...['deleted purge', 'deleted restore', 'drain', 'freeze', 'grant allow', 'grant decrypt-by-role', 'grant defaults'],
  ...['grant deny', 'grant remove', 'hold release', 'hold set', 'index rebuild', 'issuer add', 'issuer allow'],
  ...['issuer deny', 'issuer drop', 'issuer remove', 'reactivate-user', 'read-only off', 'read-only on', 'recompact'],
  ...['remove-member', 'restore', 'revoke', 'rewrap-keys', 'rotate-data-keys', 'rule delete', 'rule set', 'set-quota'],
  ...['set-role', 'set-site-admin', 'take-over', 'team add', 'team create', 'team delete', 'team remove', 'thaw'],
  ...['unset-site-admin', 'user link', 'user remove-password', 'user set-password', 'user sign-out'],
].map((words) => `admin ${words}`);
const withoutJson: Readonly<Record<string, string>> = {
  ...Object.fromEntries(changes.map((words) => [words, 'says what it has done'])),
  'admin journal': 'prints JSON, an entry a line',
  'blobs switch': 'says what it has done',
  'blobs finish': 'says what it has done',
  'blobs cancel': 'says what it has done',
  server: 'runs until it is stopped',
  api: 'runs until it is stopped',
  worker: 'runs until it is stopped',
  setup: 'writes a file',
  'support-bundle': 'writes a file',
  'create-bucket': 'says what it has done',
  migrate: 'says what it has done',
  'upgrade-database': 'says what it has done',
  completion: 'prints a script',
  'debug log-level': 'says what it has done',
  'debug cpu-profile': 'writes a file',
  'debug heap-snapshot': 'writes a file',
  schema: 'prints JSON',
  wait: 'says what it has done',
  approve: 'says what it has done',
  drain: 'says what it has done',
  'export-config': 'prints YAML documents',
};

/** Commands whose output other tests compare with its schema, because they need more than a database: where. */
const elsewhere: Readonly<Record<string, string>> = {
  'admin site promote': 'site.test.ts',
  'admin site demote': '../faults/site.test.ts',
  'backup restore': 'backup.test.ts',
  'backup verify': 'backup-encryption.test.ts',
  'bundle return': 'bundle.test.ts',
  'bundle status': 'bundle.test.ts',
  plan: 'configuration.test.ts',
  apply: 'configuration.test.ts',
  'debug list': 'debug-socket.test.ts',
  doctor: 'doctor.test.ts',
  top: 'top.test.ts',
};

let recipient = '';
let token = '';
let stack = { name: '' };

beforeAll(async () => {
  recipient = await identityToRecipient(await generateIdentity());
  await run('admin', 'create-organization', organization);
  const id = await createStack(app);
  stack = { name: id.path.replace('/api/stacks/', '') };
  await ok(app.call('POST', `${id.path}/import`, { auth: id.auth, body: deployment(2) }));
  await run('admin', 'create-user', 'ada-json', ...inOrganization, '--role', 'admin');
  await run('admin', 'create-user', 'bob-json', '--site-admin');
  await run('admin', 'team', 'create', 'ops', ...inOrganization);
  await run('admin', 'team', 'add', 'ops', 'ada-json', ...inOrganization, '--admin');
  for (const tag of [[], ['--tag', 'env'], ['--tag', 'env=prod']])
    await run('admin', 'grant', 'allow', 'read', ...inOrganization, '--team', 'ops', ...tag);
  await run('admin', 'issuer', 'add', 'ci', ...inOrganization, '--url', 'https://ci.example');
  await run(
    'admin',
    'issuer',
    'allow',
    'ci',
    ...inOrganization,
    '--rule',
    'sub=a*',
    '--service',
    '--scope',
    'read:a/*',
  );
  await run('admin', 'issuer', 'deny', 'ci', ...inOrganization, '--rule', 'sub=b', 'sub=c', '--team', 'ops');
  await run('admin', 'rule', 'set', 'lock-wait', 'seconds=60', ...inOrganization, '--tag', 'env=dev');
  await run('admin', 'approve', stack.name, commit, '--reason', 'reviewed');
  token = (JSON.parse(await run('admin', 'user', 'create-token', 'ada-json', '--json')) as { id: string }).id;
  await run('admin', 'token', 'create', 'ci', ...inOrganization, '--service', '--scope', 'read:*/*');
});

/** Runs a command that must succeed. */
async function run(...words: string[]): Promise<string> {
  const { code, stderr, stdout } = await runInProcess(app, ...words);
  if (code !== 0) throw new Error(`${words.join(' ')}: ${code} ${stderr}`);
  return stdout;
}

const locationOf = (name: string): string => path.join(folder, name);

/** In this order: some need what those before them have written. */
const runs: readonly (() => string[])[] = [
  () => ['admin', 'list'],
  () => ['admin', 'list', '--user', 'bob-json'],
  () => ['admin', 'user', 'create-token', 'ada-json'],
  () => ['admin', 'token', 'create', 'other', ...inOrganization],
  () => ['admin', 'token', 'rotate', token],
  () => ['admin', 'token', 'list', ...inOrganization],
  () => ['admin', 'token', 'max-days', '1', ...inOrganization, '--preview'],
  () => ['admin', 'token', 'max-days', 'none', ...inOrganization],
  () => ['admin', 'user', 'sign-in-link', 'ada-json'],
  () => ['admin', 'team', 'list', ...inOrganization],
  () => ['admin', 'grant', 'list', ...inOrganization],
  () => ['admin', 'issuer', 'list', ...inOrganization],
  () => ['admin', 'rule', 'list', ...inOrganization],
  () => ['admin', 'rule', 'estimate', 'keep-versions', 'days=30', ...inOrganization],
  () => ['admin', 'approvals', stack.name],
  () => ['admin', 'quotas'],
  () => ['admin', 'check-keys'],
  () => ['admin', 'audit', 'verify'],
  () => ['admin', 'deleted', 'list', ...inOrganization],
  () => ['admin', 'read-only', 'status'],
  () => ['admin', 'fsck'],
  () => ['admin', 'scrub'],
  () => ['admin', 'reconcile'],
  () => ['admin', 'site', 'status'],
  () => ['export', '--organization', stack.name.split('/')[0] ?? '', '--to', `file://${locationOf('diy')}`],
  () => [
    'export',
    '--organization',
    stack.name.split('/')[0] ?? '',
    '--archive',
    locationOf('archive'),
    '--recipient',
    recipient,
  ],
  () => ['import', '--from', `file://${locationOf('diy')}`, ...inOrganization],
  () => ['import', '--from', `file://${locationOf('diy')}`, ...inOrganization, '--apply'],
  () => ['import', '--from', `file://${locationOf('diy')}`, ...inOrganization, '--verify'],
  () => ['import', '--from', `file://${locationOf('diy')}`, ...inOrganization, '--rollback'],
  () => ['backup', 'create', '--to', locationOf('backups')],
  () => ['backup', 'list', '--from', locationOf('backups')],
  () => ['backup', 'prune', '--from', locationOf('backups'), '--keep', '1'],
  () => ['blobs', 'status'],
  () => ['blobs', 'copy', '--to', locationOf('blobs')],
  () => ['blobs', 'verify'],
];

describe('the JSON that commands print is as their schemas say', () => {
  const named = runs.map((words) => ({
    name: words()
      .slice(0, words()[0] === 'admin' ? 3 : 2)
      .join(' '),
    words,
  }));
  test.each(named)('$name', async ({ words }) => {
    const given = words();
    assertOutput(given, await run(...given, '--json'));
    if (given[0] !== 'admin') return;
    // For a person it is other text; the name of a token cannot be used again.
    expect(await run(...given.map((word) => (word === 'other' ? 'more' : word)))).not.toMatch(/^\{/);
  });
});

test('each command has --json and a schema, or a reason not to, and a test runs it', async () => {
  const leaves = (command: Command, words: string[]): { words: string; hasJson: boolean }[] =>
    command.commands.length === 0
      ? [{ words: words.join(' '), hasJson: command.options.some(({ long }) => long === '--json') }]
      : command.commands.flatMap((each) => (each.name() === 'help' ? [] : leaves(each, [...words, each.name()])));
  const program = await createWholeProgram({ loadConfig: () => app.context.config, exitCode: 0 });
  const all = leaves(program, []);
  expect(all.length).toBeGreaterThan(80);
  const named = (hasJson: boolean) => all.filter((leaf) => leaf.hasJson === hasJson).map(({ words }) => words);
  expect(named(true).sort()).toEqual(Object.keys(outputs).sort());
  expect(named(false).sort()).toEqual(Object.keys(withoutJson).sort());
  const names = Object.keys(outputs);
  const ran = new Set(runs.map((words) => names.find((name) => words().join(' ').startsWith(name))));
  expect(names.filter((name) => !ran.has(name)).sort()).toEqual(Object.keys(elsewhere).sort());
  for (const [name, file] of Object.entries(elsewhere)) {
    const text = readFileSync(path.join(import.meta.dirname, file), 'utf8');
    const word = name.split(' ').at(-1) as string;
    expect([name, text.includes(`'${word}'`) && text.includes("'--json'")]).toEqual([name, true]);
  }
});

test('`holdfast schema` lists the schemas, and prints each', async () => {
  const listed = (await run('schema', '--list')).trim().split('\n');
  expect(listed.length).toBe(Object.keys(outputs).length);
  for (const line of listed) {
    const [id = '', command = ''] = line.split('  holdfast ');
    expect(JSON.parse(await run('schema', ...command.split(' ')))).toMatchObject({ $id: id, allOf: [{}, {}] });
  }
  const unknown = await runInProcess(app, 'schema', 'admin', 'freeze');
  expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining('no command `holdfast admin freeze`')]);
});
