import { tmpdir } from 'node:os';
import { expect, test } from '@jest/globals';
import { startVerb } from '../support/verb.ts';

const stack = 'acme/shop/prod';

/** None of these has come as far as to look for a database, which there is none of. */
test.each([
  ['an option of another command', ['admin', 'quotas', '--stacks', '5'], "unknown option '--stacks'"],
  ['an option of another command', ['admin', 'refold', stack, '--version', '3'], "unknown option '--version'"],
  ['an option of another command', ['admin', 'restore', stack, '2', '--version', '3'], "unknown option '--version'"],
  ['an unknown option', ['admin', 'check-keys', '--verbose'], "unknown option '--verbose'"],
  ['an unknown option', ['migrate', '--force'], "unknown option '--force'"],
  ['one argument too many', ['admin', 'accept', stack, 'other'], "too many arguments for 'accept'"],
  ['one argument too many', ['api', 'now'], "too many arguments for 'api'"],
  ['a missing argument', ['admin', 'refold'], "missing required argument 'organization/project/stack'"],
  ['a missing argument', ['admin', 'restore', stack], "missing required argument 'version'"],
  ['a missing option', ['admin', 'remove-member', 'ada'], "required option '--organization <organization>'"],
])('%s is refused with the usage of the command: %j', async (_, words, sentence) => {
  const run = await startVerb(words, { HOLDFAST_DATA_DIR: tmpdir() }).ended();
  expect([run.code, run.stderr]).toEqual([2, expect.stringContaining(`holdfast: ${sentence}`)]);
  const command = words[0] === 'admin' ? words.slice(0, 2) : words.slice(0, 1);
  expect(run.stderr).toContain(`Usage: holdfast ${command.join(' ')}`);
});
