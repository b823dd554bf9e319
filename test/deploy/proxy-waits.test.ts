import { readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ClusterProcess } from '../../testkit/cluster-process.ts';
import { findFixedPorts } from '../../testkit/fixed-ports.ts';
import { proxySpec } from '../../testkit/proxy-spec.ts';
import { ensureToolchain } from '../../testkit/toolchain/toolchain.ts';
import { until } from '../support/until.ts';

const shipped = path.join(import.meta.dirname, '../../deploy/proxy/Caddyfile');
const lastCall = '/api/stacks/acme/web/prod/update?entry=e&hop=9';

// The API answers a call only when a test says so; the proxy has less patience than it is shipped with.
let home: string;
let api: Server;
let proxy: ClusterProcess;
let url: string;
const held: { at: string; response: ServerResponse }[] = [];

beforeAll(async () => {
  const { caddy } = await ensureToolchain({ only: ['caddy'] });
  home = await mkdtemp(path.join(tmpdir(), 'holdfast-proxy-waits-'));
  api = createServer((request, response) => {
    const at = request.url ?? '';
    if (at.startsWith('/api/')) held.push({ at, response });
    else response.end();
  });
  await new Promise<void>((resolve) => void api.listen(0, '127.0.0.1', resolve));
  const { port: apiPort } = api.address() as AddressInfo;
  const text = readFileSync(shipped, 'utf8').replace(/response_header_timeout 300s/, 'response_header_timeout 1s');
  const config = path.join(home, 'Caddyfile');
  writeFileSync(config, text);
  expect(text).toContain('response_header_timeout 1s');
  const [port = 0] = await findFixedPorts(1);
  url = `http://127.0.0.1:${port}`;
  const spec = proxySpec(caddy, home, port, [apiPort], apiPort);
  proxy = new ClusterProcess({ ...spec, args: ['run', '--adapter', 'caddyfile', '--config', config] }, () => {});
  await proxy.start();
});
afterAll(async () => {
  await proxy?.stop();
  api?.closeAllConnections();
  api?.close();
  await rm(home, { recursive: true, force: true });
});

test('the proxy lets the last call of a run wait for its stack, and ends any other one that gets no answer', async () => {
  const waiting = fetch(`${url}${lastCall}`, { method: 'POST', body: '{}' });
  await until(() => held.some(({ at }) => at === lastCall), 'the call has reached the API');
  const ended = await fetch(`${url}/api/stacks/acme/web/prod/update/u/checkpoint`, { method: 'PATCH', body: '{}' });
  expect(ended.status).toBe(504);
  for (const { at, response } of held) if (at === lastCall) response.end('its turn');
  expect(await (await waiting).text()).toBe('its turn');
});
