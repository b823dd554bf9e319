import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { listRoutes } from '../support/routes.ts';
import { testApp } from '../support/test-app.ts';

const caddyfile = path.join(import.meta.dirname, '../../deploy/proxy/Caddyfile');

const server = testApp();

/** Served by the container of the web UI in a cluster, or only by a replica. */
const notThroughProxy = /^\/(admin\/queues(\/|$)|fonts\/|metrics$|$)|^\/\*$/;

test('the proxy of the cluster sends every path of the API to the API', () => {
  const [, list = ''] = /@api path (.+)/.exec(readFileSync(caddyfile, 'utf8')) ?? [];
  const patterns = list.trim().split(/\s+/);
  const isSent = (url: string): boolean =>
    patterns.some((pattern) => (pattern.endsWith('*') ? url.startsWith(pattern.slice(0, -1)) : url === pattern));
  const urls = new Set(listRoutes(server.app).map((route) => route.slice(route.indexOf(' ') + 1)));
  expect(urls.size).toBeGreaterThan(100);
  expect([...urls].filter((url) => !notThroughProxy.test(url) && !isSent(url))).toEqual([]);
});
