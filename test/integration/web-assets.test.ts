import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import Fastify, { type FastifyInstance } from 'fastify';
import { registerErrors } from '../../src/api/platform/http/errors.ts';
import { registerSecurityHeaders } from '../../src/api/platform/http/security-headers.ts';
import { registerWebAssets } from '../../src/api/platform/http/web-assets.ts';
import { webBuildFolder } from '../../src/api/platform/http/web-build.ts';

const page = '<!doctype html><head><title>Holdfast</title></head>';
const script = 'export {};'.repeat(200);
const html = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

async function serve(folder: string): Promise<FastifyInstance> {
  const app = Fastify();
  registerSecurityHeaders(app);
  await registerWebAssets(app, folder);
  registerErrors(app);
  app.get('/api/user', async () => ({}));
  app.post('/sign-in', async () => ({}));
  return app;
}

let root: string;
let app: FastifyInstance;

beforeAll(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'holdfast-web-'));
  const folder = path.join(root, 'web');
  await mkdir(path.join(folder, 'assets'), { recursive: true });
  await writeFile(path.join(folder, 'index.html'), page);
  await writeFile(path.join(folder, '.sources'), 'of the build');
  await writeFile(path.join(root, 'secret.js'), 'secret');
  await writeFile(path.join(folder, 'assets', 'main-abc.js'), script);
  await writeFile(path.join(folder, 'assets', 'main-abc.js.gz'), gzipSync(script));
  app = await serve(folder);
});

afterAll(async () => {
  await app.close();
  await rm(root, { recursive: true });
});

describe('the web UI', () => {
  test.each([
    '/',
    '/acme',
    '/acme/web/prod',
    '/admin',
    '/admin/web/prod',
    '/acme/web/prod/updates/3?tab=a',
    '/a.b/c',
    '/no/such/page',
  ])('is the answer for a browser at %s', async (url) => {
    const answer = await app.inject({ url, headers: html });
    expect(answer.statusCode).toBe(200);
    expect(answer.body.replace(/<meta [^>]*>\n/g, '')).toBe(page);
    expect(answer.headers).toMatchObject({ 'content-type': 'text/html; charset=utf-8' });
    expect(answer.headers['cache-control']).toBe('no-cache');
    expect(answer.headers['cache-control']).not.toContain('no-store');
    expect(answer.headers['content-security-policy']).not.toContain('unsafe');
    expect(answer.headers['content-security-policy']).toContain("script-src 'self'");
  });

  test.each([
    '/api',
    '/api/nothing',
    '/trpc/no.such',
    '/scim/v2',
    '/policy-packs/x',
    '/assets/none-123.js',
    '/healthz',
  ])('is not the answer for a browser at %s', async (url) => {
    const answer = await app.inject({ url, headers: html });
    expect(answer.statusCode).toBe(404);
    expect(answer.json()).toMatchObject({ code: 404, message: `There is no route GET ${url}` });
  });

  test.each([
    ['GET', { accept: 'application/vnd.pulumi+8' }],
    ['GET', { accept: '*/*' }],
    ['POST', html],
    ['DELETE', html],
  ] as const)('is not the answer for a %s with %j', async (method, headers) => {
    const answer = await app.inject({ method, url: '/acme/web/prod', headers });
    expect(answer.statusCode).toBe(404);
    expect(answer.json()).toMatchObject({ code: 404 });
  });

  test.each([
    ['/acme/web/prod', 'acme/web/prod'],
    ['/acme/web/prod/', 'acme/web/prod'],
    ['/acme/web/prod/updates/3?tab=a', 'acme/web/prod: update 3'],
    ['/acme/web/prod/previews/0b7c1a52-1111-4222-8333-944455556666', 'acme/web/prod: preview'],
    ['/acme/%22%3E%3Cscript%3E/p%26d', 'acme/&#34;&#62;&#60;script&#62;/p&#38;d'],
    ['/$&/$`/$1', '$&#38;/$`/$1'],
  ])('has a card for chats at %s, with what the address says and nothing else', async (url, title) => {
    for (const headers of [html, { accept: '*/*', 'user-agent': 'Slackbot-LinkExpanding 1.0' }]) {
      const answer = await app.inject({ url, headers });
      expect([answer.statusCode, answer.headers['cache-control']]).toEqual([200, 'no-cache']);
      const tags = [...answer.body.matchAll(/<meta property="([^"]*)" content="([^"]*)">\n/g)].map(([, ...tag]) => tag);
      expect(Object.fromEntries(tags)).toEqual({
        ...{ 'og:site_name': 'Holdfast', 'og:type': 'website', 'og:title': title },
        'og:description': 'A Pulumi stack. Sign in to see it.',
      });
      expect(answer.body.replace(/<meta [^>]*>\n/g, '')).toBe(page);
    }
    const head = await app.inject({ method: 'HEAD', url, headers: html });
    expect([head.statusCode, head.body]).toEqual([200, '']);
  });

  test.each(['/', '/acme', '/acme/~/members', '/account/a'])('has no card at %s', async (url) => {
    expect((await app.inject({ url, headers: html })).body).toBe(page);
  });

  test('routes come first', async () => {
    expect((await app.inject({ url: '/api/user', headers: html })).json()).toEqual({});
  });

  test('files with a hash are cached forever, and sent as they were compressed', async () => {
    const answer = await app.inject({ url: '/assets/main-abc.js', headers: { 'accept-encoding': 'gzip' } });
    expect(answer.statusCode).toBe(200);
    expect(answer.headers).toMatchObject({
      'cache-control': 'public, max-age=31536000, immutable',
      'content-encoding': 'gzip',
      'content-type': 'application/javascript; charset=utf-8',
      'x-content-type-options': 'nosniff',
    });
    expect(answer.headers['vary']).toMatch(/accept-encoding/i);
    expect(gunzipSync(answer.rawPayload).toString()).toBe(script);
    expect((await app.inject({ url: '/assets/main-abc.js' })).body).toBe(script);
    const head = await app.inject({ method: 'HEAD', url: '/assets/main-abc.js' });
    expect([head.statusCode, head.body]).toEqual([200, '']);
  });

  test.each([
    '/assets/../secret.js',
    '/assets/..%2f..%2fsecret.js',
    '/assets/%2e%2e/%2e%2e/secret.js',
    '/..%2fsecret.js',
    '/assets/main-abc.js.gz',
    '/assets/',
    '/.sources',
  ])('gives nothing besides its files: %s', async (url) => {
    const answer = await app.inject({ url });
    expect(answer.statusCode).toBe(404);
    expect(answer.json()).toMatchObject({ code: 404 });
  });

  test.each([{}, { accept: '*/*' }, { accept: 'application/json' }])('is the answer at / for %j', async (headers) => {
    expect((await app.inject({ url: '/', headers })).body).toBe(page);
  });

  test('says to every client that it is being built, and appears without a restart', async () => {
    const folder = path.join(root, 'building', 'web');
    await using late = await serve(folder);
    await mkdir(webBuildFolder(folder, process.pid), { recursive: true });
    const shown = await late.inject({ url: '/acme', headers: html });
    expect(shown.statusCode).toBe(503);
    expect(shown.headers).toMatchObject({
      'retry-after': '5',
      refresh: '5',
      'content-type': 'text/html; charset=utf-8',
    });
    expect(shown.body).toContain('The web UI is being built');
    const told = await late.inject({ url: '/', headers: { accept: '*/*' } });
    expect(told.statusCode).toBe(503);
    expect(told.headers['retry-after']).toBe('5');
    expect(told.json()).toEqual({ code: 503, message: expect.stringContaining('The web UI is being built') });
    expect((await late.inject({ url: '/assets/main-abc.js', headers: html })).statusCode).toBe(404);
    await mkdir(folder);
    await writeFile(path.join(folder, 'index.html'), page);
    for (const url of ['/', '/acme']) expect((await late.inject({ url, headers: html })).body).toBe(page);
  });

  test('says to every client where it is not part of the installation, also after a build that was killed', async () => {
    const folder = path.join(root, 'none', 'web');
    await using without = await serve(folder);
    const told = await without.inject({ url: '/', headers: { accept: '*/*' } });
    expect(told.statusCode).toBe(404);
    expect(told.headers).not.toHaveProperty('retry-after');
    expect(told.json()).toEqual({ code: 404, message: expect.stringContaining('not part of this installation') });
    const ended = spawnSync(process.execPath, ['--version']).pid;
    await mkdir(webBuildFolder(folder, ended), { recursive: true });
    const shown = await without.inject({ url: '/acme', headers: html });
    expect(shown.statusCode).toBe(404);
    expect(shown.body).toContain('npm run build:web');
  });
});

test.each(['/', '/theme.js'])(
  'a later release is served at %s although its file has the same time and size',
  async (url) => {
    const folder = await mkdtemp(path.join(tmpdir(), 'holdfast-web-'));
    const name = url === '/' ? 'index.html' : url.slice(1);
    const release = async (content: string): Promise<void> => {
      await writeFile(path.join(folder, name), content);
      await utimes(path.join(folder, name), 499_162_500, 499_162_500);
    };
    const other = await serve(folder);
    try {
      await release('one');
      const { etag, 'last-modified': modified } = (await other.inject({ url, headers: html })).headers;
      await release('two');
      const known = {
        ...(etag ? { 'if-none-match': etag } : {}),
        ...(modified ? { 'if-modified-since': modified } : {}),
      };
      const answer = await other.inject({ url, headers: { ...html, ...(known as Record<string, string>) } });
      expect([answer.statusCode, answer.body]).toEqual([200, 'two']);
    } finally {
      await other.close();
      await rm(folder, { recursive: true });
    }
  },
);
