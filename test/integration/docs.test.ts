import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import { ensureToolchain } from '../../testkit/toolchain/toolchain.ts';
import { describeWithTools } from '../support/tools.ts';

const root = path.join(import.meta.dirname, '../..');
const read = (name: string): string => readFileSync(path.join(root, name), 'utf8');
const documentsIn = (folder: string): string[] =>
  readdirSync(path.join(root, folder))
    .filter((name) => name.endsWith('.md'))
    .map((name) => path.join(folder, name));

/** The name by which a link finds a heading. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');

const leadsSomewhere = (target: string, anchor: string | undefined): boolean =>
  existsSync(path.join(root, target)) &&
  (anchor === undefined ||
    [...read(target).matchAll(/^#+ (.*)$/gm)].some(([, text = '']) => anchorOf(text) === anchor));

test('links of documents lead to files and headings that exist', () => {
  const documents = [...documentsIn('.'), ...documentsIn('docs'), ...documentsIn('docs/adr')];
  const links = documents.flatMap((document) =>
    [...read(document).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)].map(([, file = '', anchor]) => ({
      document,
      target: file === '' ? document : path.join(path.dirname(document), file),
      anchor,
    })),
  );
  expect(links.length).toBeGreaterThan(100);
  expect(links.filter(({ anchor, target }) => !leadsSomewhere(target, anchor))).toEqual([]);
});

test('messages and comments of the sources name documents and headings that exist', () => {
  const sources = readdirSync(path.join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => path.join('src', name));
  const named = sources.flatMap((source) =>
    [...read(source).matchAll(/(docs\/[\w/-]+\.md)(?:#([\w-]+))?|operations guide/g)].map(
      ([text, target = text, anchor]) => ({
        source,
        target,
        anchor,
      }),
    ),
  );
  expect(named.length).toBeGreaterThan(3);
  expect(named.filter(({ anchor, target }) => !leadsSomewhere(target, anchor))).toEqual([]);
});

test('docs/adr/README.md lists every decision by its title', () => {
  const index = read('docs/adr/README.md');
  const decisions = documentsIn('docs/adr').filter((document) => path.basename(document) !== 'README.md');
  const rows = decisions.map(
    (document) => `[${read(document).split('\n', 1)[0]?.slice(2)}](${path.basename(document)})`,
  );
  expect(rows.length).toBeGreaterThan(10);
  expect(rows.filter((row) => !index.includes(row))).toEqual([]);
});

test('docs/architecture.md names only files that exist', () => {
  const named = [...read('docs/architecture.md').matchAll(/`((?:api|workers|shared)\/[\w./-]+|[\w-]+\.ts)`/g)].map(
    ([, name]) => name as string,
  );
  const sources = readdirSync(path.join(root, 'src'), { recursive: true, encoding: 'utf8' });
  const isThere = (name: string): boolean =>
    sources.some((source) => source === name.replace(/\/$/, '') || source.endsWith(`/${name}`));
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((name) => !isThere(name))).toEqual([]);
});

test('docs/security.md names a test for each promise, and only tests that exist', () => {
  const [, promises = ''] = /## What is promised\n(.*?)\n## /s.exec(read('docs/security.md')) ?? [];
  const rows = promises.split('\n').filter((line) => /^\| (?!Promise|---)/.test(line));
  expect(rows.length).toBeGreaterThan(20);
  const named = rows.map((row) => [...row.matchAll(/`([\w./-]+\.test\.ts)`/g)].map(([, name]) => name as string));
  expect(rows.filter((_, at) => named[at]?.length === 0)).toEqual([]);
  expect(named.flat().filter((name) => !existsSync(path.join(root, name)))).toEqual([]);
});

await describeWithTools('docs/vm.md', ['caddy'], () => {
  test('has a Caddyfile that Caddy accepts', async () => {
    const [, text = ''] = /^```\n(pulumi\.example\.com \{\n(?:.*\n)*?)```$/m.exec(read('docs/vm.md')) ?? [];
    const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-caddy-'));
    try {
      const file = path.join(folder, 'Caddyfile');
      writeFileSync(file, text);
      const { caddy } = await ensureToolchain({ only: ['caddy'] });
      const env = { PATH: process.env['PATH'], HOME: folder };
      const { stdout } = await promisify(execFile)(caddy, ['adapt', '--validate', '--config', file], { env });
      expect(stdout).toContain('127.0.0.1:9090');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
