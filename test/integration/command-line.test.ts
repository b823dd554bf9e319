import { execFile, spawnSync } from 'node:child_process';
import { devNull, tmpdir } from 'node:os';
import { promisify } from 'node:util';
import { describe, expect, jest, test } from '@jest/globals';
import { Command } from 'commander';
import { addAdminCommands } from '../../src/cli/admin/admin-commands.ts';
import { createWholeProgram, runCommandLine } from '../../src/cli/command-line.ts';
import { shells } from '../../src/cli/completion/completion-scripts.ts';
import { holdfastVersion } from '../../src/shared/platform/config/config.ts';
import { ensureToolchain } from '../../testkit/toolchain/toolchain.ts';
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

test.each([
  ['with an equals sign', ['--settings=/none/a', 'create-bucket'], 1, '/none/a cannot be read'],
  ['as two words', ['--settings', '/none/a', 'create-bucket'], 1, '/none/a cannot be read'],
  ['twice', [`--settings=${devNull}`, '--settings', '/none/b', 'create-bucket'], 2, "argument '/none/b' is invalid"],
  ['twice with an equals sign', ['--settings', devNull, '--settings=/none/b', 'create-bucket'], 2, 'is invalid'],
  ['not first', ['--healthz', '--settings=/none/b'], 2, "argument '/none/b' is invalid"],
])('a file of settings given %s is read, or refused', async (_how, words, code, sentence) => {
  expect(await run(...words)).toEqual({ code, stdout: '', stderr: expect.stringContaining(sentence) });
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

test('the list of commands is printed on demand, and on stderr when the command is missing', async () => {
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
  expect(await run()).toMatchObject({ code: 2, stderr: expect.stringContaining('  create-bucket  ') });
  expect(await run('admin')).toMatchObject({ code: 2, stderr: expect.stringContaining('  set-site-admin <login>  ') });
  expect(await run('--version')).toMatchObject({ code: 0, stdout: `${holdfastVersion}\n` });
});

/** Every command with its words, as declared. */
async function walk(): Promise<{ words: string[]; command: Command }[]> {
  const below = (words: string[], command: Command): { words: string[]; command: Command }[] => [
    { words, command },
    ...command.commands.flatMap((each) => below([...words, each.name()], each)),
  ];
  return below([], await createWholeProgram({ loadConfig: noConfig, exitCode: 0 }));
}

/** A short answer to wrong words. */
function expectGuidance(
  { code, stderr, stdout }: Awaited<ReturnType<typeof run>>,
  what: string,
  words: string[],
): void {
  const name = ['holdfast', ...words].join(' ');
  // 2 of `holdfast plan` says that there are changes.
  expect([code, stdout, stderr]).toEqual([words[0] === 'plan' ? 1 : 2, '', expect.stringContaining(what)]);
  expect(stderr).toMatch(/^holdfast: /);
  expect(stderr).toContain(`\nUsage: ${name}`);
  expect(stderr).toContain(`\nMore:  ${name} --help\n`);
  expect(stderr.trim().split('\n').length).toBeLessThanOrEqual(4);
}

test('every command answers wrong words with a suggestion and a few lines', async () => {
  const all = await walk();
  expect(all.length).toBeGreaterThan(80);
  let values = 0;
  for (const { command, words } of all) {
    const required = command.registeredArguments.filter((each) => each.required).map(() => 'x');
    const mandatory = command.options.flatMap(({ long, mandatory }) => (mandatory ? [long as string, '1'] : []));
    expectGuidance(await run(...words, ...mandatory, '--bogus-option'), "unknown option '--bogus-option'", words);
    const [misspelled] = command.options.filter(({ long }) => (long ?? '').length > 5);
    if (misspelled?.long)
      expectGuidance(
        await run(...words, ...mandatory, `${misspelled.long}x`),
        `(Did you mean ${misspelled.long}?)`,
        words,
      );
    const [child] = command.commands;
    if (child) expectGuidance(await run(...words, `${child.name()}x`), `(Did you mean `, words);
    else if (!command.registeredArguments.some(({ variadic }) => variadic)) {
      const valid = command.registeredArguments.map(({ argChoices }) => argChoices?.[0] ?? 'acme/shop/prod');
      expectGuidance(await run(...words, ...valid, 'x', ...mandatory), 'too many arguments', words);
    }
    if (required.length > 0) expectGuidance(await run(...words, ...mandatory), 'missing required argument', words);
    for (const { long, parseArg } of command.options) {
      if (!parseArg || !long) continue;
      const answer = await run(...words, long, '?');
      if (answer.stderr.includes('is invalid')) {
        expectGuidance(answer, `argument '?' is invalid`, words);
        values++;
      }
    }
  }
  expect(values).toBeGreaterThan(5);
});

describe('holdfast completion', () => {
  test('bash completes commands and options at every place', async () => {
    const { code, stdout: script } = await run('completion', 'bash');
    expect(code).toBe(0);
    const asked = (await walk()).filter(({ words }) => words.at(-1) !== 'help');
    // One process for all: each line has what it completes to.
    const questions = asked.map(({ words }) => {
      const line = ['holdfast', ...words, ''].map((word) => `'${word}'`).join(' ');
      return `COMP_WORDS=(${line}); COMP_CWORD=${words.length + 1}; _holdfast; echo "\${COMPREPLY[*]}"`;
    });
    const { stdout } = await promisify(execFile)('bash', ['-c', `${script}\n${questions.join('\n')}`]);
    const answers = stdout.split('\n').map((line) => line.split(' '));
    for (const [at, { command }] of asked.entries()) {
      const names = [...command.commands.map((each) => each.name()), ...command.options.map(({ long }) => long)];
      expect(answers[at]).toEqual(expect.arrayContaining(names));
    }
  });

  test.each(shells)('%s can read its script', async (shell) => {
    const { code, stdout: script } = await run('completion', shell);
    expect([code, script.includes('--organization') || script.includes('-l organization')]).toEqual([0, true]);
    const program = shell === 'bash' ? shell : (await ensureToolchain({ only: [shell] }))[shell];
    // A pipe of the shell: fish opens it by name, which it cannot do with the one of this process.
    const parsed = spawnSync('sh', ['-c', `cat | ${program} -n /dev/stdin`], { input: script, encoding: 'utf8' });
    expect([parsed.error, parsed.stderr]).toEqual([undefined, '']);
  });

  test('another shell is refused', async () => {
    expectGuidance(await run('completion', 'tcsh'), 'Allowed choices are bash, zsh, fish.', ['completion']);
  });
});
