import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { startChromium, type TestBrowser } from '../../testkit/chromium.ts';
import { type Cluster, startCluster } from '../../testkit/cluster.ts';
import { holdfastProgram } from '../../testkit/holdfast-program.ts';
import { withHelpers } from '../../testkit/holdfast-server.ts';
import { pollUntil } from '../../testkit/poll.ts';
import { Scenario, unattended } from '../../testkit/scenario.ts';
import { thingProgram } from '../../testkit/stash-program.ts';
import { buildWeb } from '../../testkit/web-build.ts';

// The web UI of a cluster: its container behind the proxy, and three replicas, of which one dies under an open page.

const password = 'correct horse battery';
const startMs = 600_000;
let cluster: Cluster;
let browser: TestBrowser;
beforeAll(async () => {
  await buildWeb();
  [cluster, browser] = await Promise.all([startCluster({ workers: 1 }), startChromium()]);
  const env = { PATH: process.env['PATH'], HOLDFAST_DATABASE_URL: cluster.databaseUrl };
  const args = [holdfastProgram, 'admin', 'user', 'set-password', 'ada'];
  const child = spawn(process.execPath, args, { env, stdio: ['pipe', 'ignore', 'ignore'] });
  child.stdin.end(`${password}\n`);
  expect((await once(child, 'exit'))[0]).toBe(0);
}, startMs);
afterAll(async () => {
  await browser?.[Symbol.asyncDispose]();
  await cluster?.stop();
}, startMs);

const get = (path: string, accept = 'text/html') => fetch(`${cluster.url}${path}`, { headers: { accept } });

test('every path of a page is the page, and other paths keep their answers', async () => {
  const page = await (await get('/')).text();
  for (const path of ['/dev-org', '/dev-org/app/prod/updates/3', '/~/search', '/dev-org/~/members']) {
    const answer = await get(path);
    expect([path, answer.status, answer.headers.get('cache-control')]).toEqual([path, 200, 'no-cache']);
    expect(await answer.text()).toBe(page);
  }
  const [script = ''] = /\/assets\/[^"]+\.js/.exec(page) ?? [];
  const asset = await get(script, '*/*');
  expect(asset.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
  expect((await get('/assets/of-an-earlier-release.js', '*/*')).status).toBe(404);
  expect((await get('/metrics')).status).toBe(404);
  for (const [path, status] of [
    ['/api/no/such/path', 404],
    ['/trpc/no.such', 401],
  ] as const) {
    const answer = await get(path, 'application/vnd.pulumi+8');
    expect([path, answer.status]).toEqual([path, status]);
    expect(answer.headers.get('content-type')).toContain('application/json');
    expect(JSON.stringify(await answer.json())).toContain('message');
  }
});

test(
  'a page goes on by itself when the replica dies that holds its stream',
  async () => {
    const { token, url } = cluster;
    const server = withHelpers({
      ...{ url, token, organization: cluster.organization, managementUrl: cluster.apiManagementUrls[0] as string },
      faults: () => [],
      [Symbol.asyncDispose]: async () => undefined,
    });
    await using scenario = await Scenario.create(server);
    const { project, workspace } = scenario;
    const page = await signIn();
    await page.goto(`${url}/${cluster.organization}/${project}/dev`);
    await page.getByText('This stack has not been updated yet').waitFor();
    await workspace.cloud.control({ slowMs: { slow: 30_000 } });
    await workspace.writeProgram(thingProgram({ project, things: { quick: { value: 'a' }, slow: { value: 'b' } } }));
    const up = await workspace.spawn(['up', ...unattended]);
    await page.getByRole('link', { name: 'Watch it' }).click();
    const row = page.getByRole('listitem').filter({ hasText: 'slow' });
    await row.getByText('creating').waitFor();
    await page.evaluate('window.isSamePage = true');
    const holder = await pollUntil('a stream', async () => (await streams()).findIndex((count) => count > 0) + 1);
    await cluster.apis[holder - 1]?.kill();
    await pollUntil('a stream to another replica', async () => (await streams()).some((count) => count > 0));
    await row.getByText('created').waitFor();
    await page.getByText('Succeeded', { exact: true }).waitFor();
    expect(await page.evaluate('window.isSamePage')).toBe(true);
    expect((await up.done).exitCode).toBe(0);
    await page.getByRole('link', { name: 'dev', exact: true }).first().click();
    await page.getByRole('link', { name: /^Update 1/ }).waitFor();
  },
  startMs,
);

/** Lands on the list of stacks. */
async function signIn(): Promise<Page> {
  const page = await browser.context.newPage();
  page.setDefaultTimeout(120_000);
  await page.goto(`${cluster.url}/sign-in`);
  await page.getByLabel('Login').fill('ada');
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.waitForURL(`${cluster.url}/`);
  return page;
}

/** Streams of each replica; 0 for one that is dead. */
function streams(): Promise<number[]> {
  return Promise.all(
    cluster.apiManagementUrls.map(async (management) => {
      const text = await fetch(`${management}/metrics`).then(
        (answer) => answer.text(),
        () => '',
      );
      return Number(/^holdfast_live_streams (\d+)/m.exec(text)?.[1] ?? 0);
    }),
  );
}
