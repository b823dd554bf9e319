import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { isOrganizationName, isReservedName } from '../../src/shared/stacks/names.ts';
import { listRoutes } from '../support/routes.ts';
import { testApp } from '../support/test-app.ts';

const caddyfile = path.join(import.meta.dirname, '../../deploy/proxy/Caddyfile');

const server = testApp();

/** Served by the container of the web UI in a cluster, or only by a replica. */
const notThroughProxy = /^\/(admin\/queues(\/|$)|fonts\/|metrics$|$)|^\/\*$/;

const patterns = (/@api path (.+)/.exec(readFileSync(caddyfile, 'utf8'))?.[1] ?? '').trim().split(/\s+/);

test('no organization may have the name of a path of the proxy, the server or its files', () => {
  const urls = listRoutes(server.app).map((route) => route.slice(route.indexOf(' ') + 1));
  const firsts = [...patterns, ...urls].map((url) => url.split('/')[1] ?? '');
  // What is below them is no address of a stack.
  const others = ['admin', 'welcome'];
  expect(firsts).toEqual(expect.arrayContaining(['api', 'sign-in', 'welcome']));
  expect(firsts.filter((name) => isOrganizationName(name) && !isReservedName(name) && !others.includes(name))).toEqual(
    [],
  );
});

test('the proxy of the cluster sends every path of the API to the API', () => {
  const isSent = (url: string): boolean =>
    patterns.some((pattern) => (pattern.endsWith('*') ? url.startsWith(pattern.slice(0, -1)) : url === pattern));
  const urls = new Set(listRoutes(server.app).map((route) => route.slice(route.indexOf(' ') + 1)));
  expect(urls.size).toBeGreaterThan(100);
  expect([...urls].filter((url) => !notThroughProxy.test(url) && !isSent(url))).toEqual([]);
});
