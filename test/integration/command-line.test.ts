import { tmpdir } from 'node:os';
import { expect, jest, test } from '@jest/globals';
import { Command } from 'commander';
import { addAdminCommands } from '../../src/cli/admin/admin-commands.ts';
import { runCommandLine } from '../../src/cli/command-line.ts';
import { holdfastVersion } from '../../src/shared/platform/config/config.ts';
import { startCommand } from '../support/command.ts';

const stack = 'acme/shop/prod';

/** None of these gets as far as connecting to a database; there is none. */
test.each([
  ['an option of another command', ['admin', 'quotas', '--stacks', '5'], "unknown option '--stacks'"],
  ['an option of another command', ['admin', 'recompact', stack, '--version', '3'], "unknown option '--version'"],
  ['an option of another command', ['admin', 'restore', stack, '2', '--version', '3'], "unknown option '--version'"],
  ['an unknown option', ['admin', 'check-keys', '--verbose'], "unknown option '--verbose'"],
  ['an unknown option', ['migrate', '--force'], "unknown option '--force'"],
  ['one argument too many', ['admin', 'accept', stack, 'other'], "too many arguments for 'accept'"],
  ['one argument too many', ['api', 'now'], "too many arguments for 'api'"],
  ['a missing argument', ['admin', 'recompact'], "missing required argument 'organization/project/stack'"],
  ['a missing argument', ['admin', 'restore', stack], "missing required argument 'version'"],
  ['a missing option', ['admin', 'remove-member', 'ada'], "required option '--organization <organization>'"],
])('%s rejects %j with the usage of the command', async (_, words, sentence) => {
  const run = await startCommand(words, { HOLDFAST_DATA_DIR: tmpdir() }).ended();
  expect([run.code, run.stderr]).toEqual([2, expect.stringContaining(`holdfast: ${sentence}`)]);
  const command = words[0] === 'admin' ? words.slice(0, 2) : words.slice(0, 1);
  expect(run.stderr).toContain(`Usage: holdfast ${command.join(' ')}`);
});

/** Every command below `holdfast admin`, as it is declared. */
const commands = (() => {
  const admin = new Command('admin');
  addAdminCommands(admin, { loadConfig: noConfig, exitCode: 0 });
  return admin.commands.map((command) => ({
    name: command.name(),
    own: command.options.map(({ long }) => long as string),
    // Commander checks for these first.
    required: command.options.flatMap(({ mandatory, long }) => (mandatory ? [long as string, 'x'] : [])),
  }));
})();
const options = [...new Set(commands.flatMap(({ own }) => own))];

function noConfig(): never {
  throw new Error('No settings are needed to refuse a command line, or to print help');
}

async function run(...words: string[]) {
  const printed = { log: '', error: '' };
  const spies = (['log', 'error'] as const).map((stream) =>
    jest.spyOn(console, stream).mockImplementation((text: unknown) => {
      printed[stream] += `${text}\n`;
    }),
  );
  try {
    return { code: await runCommandLine(words, noConfig), stdout: printed.log, stderr: printed.error };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}

test.each(commands)('admin $name accepts only its own options and has a help text', async ({ name, own, required }) => {
  for (const option of options.filter((each) => !own.includes(each)))
    expect(await run('admin', name, ...required, option)).toEqual({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(
        new RegExp(`^holdfast: unknown option '${option}'\n[^]*Usage: holdfast admin ${name}`),
      ),
    });
  const helps = [
    await run('admin', name, '--help'),
    await run('help', 'admin', name),
    await run('admin', 'help', name),
  ];
  for (const { code, stdout } of helps) {
    expect([code, stdout]).toEqual([0, expect.stringContaining(`Usage: holdfast admin ${name}`)]);
    for (const option of own) expect(stdout).toContain(`  ${option}`);
  }
});

test('the list of commands is printed on demand, and on stderr when the command is missing or unknown', async () => {
  for (const words of [['--help'], ['-h'], ['help']])
    expect(await run(...words)).toMatchObject({ code: 0, stdout: expect.stringContaining('  create-bucket  ') });
  for (const words of [
    ['admin', '--help'],
    ['admin', 'help'],
    ['help', 'admin'],
  ])
    expect(await run(...words)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('  set-site-admin <login>  '),
    });
  for (const words of [[], ['bogus']])
    expect(await run(...words)).toMatchObject({ code: 2, stderr: expect.stringContaining('  create-bucket  ') });
  expect(await run('admin')).toMatchObject({ code: 2, stderr: expect.stringContaining('  set-site-admin <login>  ') });
  expect(await run('--version')).toMatchObject({ code: 0, stdout: `${holdfastVersion}\n` });
});
