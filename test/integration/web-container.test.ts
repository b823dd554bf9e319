import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import Fastify from 'fastify';
import { registerSecurityHeaders } from '../../src/api/platform/http/security-headers.ts';
import { registerWebAssets } from '../../src/api/platform/http/web-assets.ts';
import { ClusterProcess } from '../../testkit/cluster-process.ts';
import { findFixedPorts } from '../../testkit/fixed-ports.ts';
import { ensureToolchain } from '../../testkit/toolchain/toolchain.ts';

const page = '<!doctype html><title>Holdfast</title>';
let home: string;
let folder: string;
let url: string;
let web: ClusterProcess;

beforeAll(async () => {
  const { caddy } = await ensureToolchain({ only: ['caddy'] });
  home = await mkdtemp(path.join(tmpdir(), 'holdfast-web-container-'));
  folder = path.join(home, 'srv');
  await mkdir(path.join(folder, 'assets'), { recursive: true });
  await writeFile(path.join(folder, 'index.html'), page);
  await writeFile(path.join(folder, '.sources'), 'of the build');
  await writeFile(path.join(folder, 'theme.js'), 'theme');
  await writeFile(path.join(folder, 'assets', 'main-abc.js'), 'script');
  await writeFile(path.join(folder, 'assets', 'main-abc.js.br'), 'compressed');
  const [port = 0] = await findFixedPorts(1);
  url = `http://127.0.0.1:${port}`;
  const config = path.join(import.meta.dirname, '../../deploy/web/Caddyfile');
  web = new ClusterProcess(
    {
      name: 'web',
      file: caddy,
      args: ['run', '--adapter', 'caddyfile', '--config', config],
      env: { HOME: home, WEB_BIND: '127.0.0.1', WEB_PORT: String(port), WEB_ROOT: folder },
      isReady: () =>
        fetch(url).then(
          ({ ok }) => ok,
          () => false,
        ),
    },
    () => {},
  );
  await web.start();
});

afterAll(async () => {
  await web?.stop();
  await rm(home, { recursive: true, force: true });
});

const get = (name: string, encoding = 'identity'): Promise<Response> =>
  fetch(`${url}${name}`, { headers: { 'accept-encoding': encoding } });

describe('the web container', () => {
  test.each(['/', '/acme', '/acme/web/prod/updates/3', '/a.b'])('answers %s with the page', async (name) => {
    const answer = await get(name);
    expect([answer.status, await answer.text()]).toEqual([200, page]);
    expect(answer.headers.get('cache-control')).toBe('no-cache');
  });

  test('answers files, those with a hash forever', async () => {
    const script = await get('/assets/main-abc.js', 'br');
    expect(script.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect(script.headers.get('content-encoding')).toBe('br');
    expect(await (await get('/assets/main-abc.js')).text()).toBe('script');
    expect((await get('/theme.js')).headers.get('cache-control')).toBe('public, max-age=86400');
  });

  test.each([
    ['/assets/of-an-earlier-release.js', 'no-store'],
    ['/fonts/none.woff2', 'no-store'],
    ['/mark.svg', 'no-store'],
    ['/.sources', 'no-cache'],
  ])('has nothing at %s, which is kept by no cache', async (name, caching) => {
    const answer = await get(name);
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([404, caching]);
  });

  test('sets the same policy as the server', async () => {
    await using app = Fastify();
    registerSecurityHeaders(app);
    await registerWebAssets(app, folder);
    const { headers } = await app.inject({ url: '/acme', headers: { accept: 'text/html' } });
    const { headers: own } = await get('/acme');
    for (const name of ['content-security-policy', 'referrer-policy', 'x-content-type-options', 'x-frame-options'])
      expect({ name, value: own.get(name) }).toEqual({ name, value: headers[name] });
  });
});
