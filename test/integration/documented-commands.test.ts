import { existsSync, globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { type ShellBlock, shellBlocks } from '../../testkit/documented.ts';

const root = path.join(import.meta.dirname, '../..');
/** What somebody follows who installs and runs it. */
const documents = [
  'README.md',
  'docs/backup.md',
  'docs/compose.md',
  'docs/deploy.md',
  'docs/kubernetes.md',
  'docs/upgrade.md',
  'docs/vm.md',
];

const blocks = documents.filter((name) => existsSync(path.join(root, name))).flatMap(shellBlocks);
const nameOf = ({ document, firstLine }: Pick<ShellBlock, 'document' | 'firstLine'>): string =>
  `${document}: ${firstLine}`;

/** The blocks that tests run: each gets its block by a call with two literals. */
const run = globSync(['e2e/**/*.test.ts', 'test/**/*.test.ts'], { cwd: root }).flatMap((file) =>
  [...readFileSync(path.join(root, file), 'utf8').matchAll(/documentedBlock\(\s*'([^']+)',\s*'([^']+)',?\s*\)/g)].map(
    ([, document = '', firstLine = '']) => nameOf({ document, firstLine }),
  ),
);

test('each block of commands in the pages for operators is run by a test, or says why not', () => {
  expect(blocks.length).toBeGreaterThan(5);
  expect(new Set(blocks.filter(({ notRun }) => notRun === null).map(nameOf))).toEqual(new Set(run));
});

test('a block that no test runs is not one that a test runs', () => {
  expect(blocks.filter((block) => block.notRun !== null && run.includes(nameOf(block)))).toEqual([]);
});
