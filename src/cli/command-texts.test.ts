import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, expect, test } from '@jest/globals';
import type { Command } from 'commander';
import { createWholeProgram } from './command-line.ts';

const root = path.join(import.meta.dirname, '../..');
let program: Command;

beforeAll(async () => {
  program = await createWholeProgram({
    exitCode: 0,
    loadConfig: () => {
      throw new Error('No settings are needed to read a command line');
    },
  });
});

/** What is wrong with the words of a command; null: nothing. A text may leave out arguments, and then all of them. */
function faultOf(words: readonly string[]): string | null {
  let command = program;
  let rest = [...words];
  for (let next: Command | undefined; ; ) {
    next = command.commands.find((each) => each.name() === rest[0] || each.aliases().includes(rest[0] as string));
    if (!next) break;
    command = next;
    rest = rest.slice(1);
  }
  // A text may also name an option alone.
  if (command.options.some(({ long, required }) => required && long === rest.at(-1))) rest.push('x');
  const { operands, unknown } = command.parseOptions(rest);
  if (command.commands.length > 0 && operands.length > 0) return `no command ${operands[0]}`;
  if (unknown.length > 0) return `unknown ${unknown.join(' ')}`;
  const declared = command.registeredArguments;
  if (operands.length > declared.length && !declared.at(-1)?.variadic) return `too many arguments`;
  const required = declared.filter((argument) => argument.required).length;
  return operands.length > 0 && operands.length < required ? 'missing arguments' : null;
}

const texts = globSync(['src/**/*.{ts,tsx}', 'docs/**/*.md', 'README.md'], { cwd: root })
  .filter((file) => !file.includes('.test.'))
  .flatMap((file) =>
    [...readFileSync(path.join(root, file), 'utf8').matchAll(/`(?:sudo |npx --no -- )?(holdfast [a-z][^`\\]*)/g)].map(
      ([, text = '']) => [file, wordsOf(text)] as const,
    ),
  )
  .filter(([, words]) => !words.includes('help') && !words.includes('--help'));

/** Without what is put in, quoted, optional or redirected, and without a second command. */
function wordsOf(text: string): string[] {
  const plain = text
    .replace(/\$\{[^}]*\}|'[^']*'/g, 'x')
    .replace(/[[\]]/g, '')
    .replace(/(,| >).*/s, '');
  return plain.trim().split(/\s+/).slice(1);
}

test('each command that a text or a page names exists with its options and arguments', () => {
  expect(texts.length).toBeGreaterThan(100);
  const faults = texts.flatMap(([file, words]) => {
    const fault = faultOf(words);
    return fault === null ? [] : [`${file}: holdfast ${words.join(' ')}: ${fault}`];
  });
  expect(faults).toEqual([]);
});

const pages = globSync(['docs/**/*.md', '*.md'], { cwd: root }).map((file) => ({
  file,
  text: readFileSync(path.join(root, file), 'utf8'),
}));

/** The commands in the shell blocks of pages, each as one line. */
const lines = pages.flatMap(({ file, text }) =>
  [...text.matchAll(/^ *```(?:sh|bash|shell|console)\b.*\n([\s\S]*?)^ *```$/gm)].flatMap(([, block = '']) =>
    block
      .replaceAll(/\\\n\s*/g, ' ')
      .split('\n')
      .map((line) => ({ file, line: line.replace(/(^|\s)#.*/, '') })),
  ),
);

/** The words of a line as a shell gives them to the command. */
function shellWords(line: string): string[] {
  return [...line.matchAll(/(?:'[^']*'|"[^"]*"|<[^>]*>|[^\s'"<])+/g)].map(([word]) => word.replaceAll(/['"]/g, ''));
}

test('each command in a shell block exists with its options and arguments', () => {
  const commands = lines.flatMap(({ file, line }) => {
    const [, words] = /^(?:\S+=\S+ |sudo (?:--\S+ )*|npx (?:--?\w+ )*)*(?:bin\/)?holdfast (.*)$/.exec(line) ?? [];
    return words === undefined ? [] : [{ file, line, words: shellWords(words.replace(/ [|>&].*/, '')) }];
  });
  expect(commands.length).toBeGreaterThan(40);
  const faults = commands.flatMap(({ file, line, words }) => {
    const fault = faultOf(words);
    return fault === null ? [] : [`${file}: ${line}: ${fault}`];
  });
  expect(faults).toEqual([]);
});

test('no shell takes a word of a block for a pattern of file names', () => {
  const open = lines.filter(({ line }) => /[*?]/.test(line.replaceAll(/'[^']*'|"[^"]*"/g, '')));
  expect(open.filter(({ line }) => line.startsWith('holdfast'))).toEqual([]);
});

test('a page names each command with its arguments so that it can be copied', () => {
  const admin = program.commands.find((command) => command.name() === 'admin');
  const names = new Set(
    (admin?.commands ?? []).flatMap((command) =>
      command.commands.length > 0
        ? command.commands.map((below) => `${command.name()} ${below.name()}`)
        : [command.name()],
    ),
  );
  expect([...names]).toEqual(expect.arrayContaining(['fsck', 'user sign-out']));
  const isCut = (code: string): boolean => {
    const [first = '', second = '', third] = code.split(/\s+/);
    return names.has(`${first} ${second}`) ? third !== undefined : names.has(first) && /^[A-Z<-]/.test(second);
  };
  const cut = pages.flatMap(({ file, text }) =>
    [...text.replaceAll(/^ *```[\s\S]*?^ *```$/gm, '').matchAll(/`([^`]+)`/g)]
      .filter(([, code = '']) => isCut(code))
      .map(([code]) => `${file}: ${code}`),
  );
  expect(cut).toEqual([]);
});
