import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Locator, Page } from 'playwright-core';
import { withHelpers } from '../../testkit/holdfast-server.ts';
import { Scenario, unattended } from '../../testkit/scenario.ts';
import { thingProgram } from '../../testkit/stash-program.ts';
import { tuned } from '../../testkit/tuned.ts';
import { until } from '../../testkit/until.ts';
import { findFlaws, runCommand } from '../../testkit/web-session.ts';
import { creation } from '../support/journal-entries.ts';
import { deployment } from '../support/state.ts';
import { startWebCluster, type WebCluster } from './support/web-cluster.ts';

// The web UI of a cluster: its container behind the proxy, three replicas, of which one dies under open pages, and workers.

const startMs = 600_000;
/** A busy machine may run nothing for seconds. */
const patience = tuned({ databaseConnectMs: 60_000, databaseAcquireMs: 60_000 });
/** Longer than a test: operations end when the test lets them. */
const longMs = 600_000;
let web: WebCluster;
beforeAll(async () => {
  // Every state is in S3, so that workers need it.
  web = await startWebCluster({ workers: 2, settings: { HOLDFAST_INLINE_BYTES: '1', ...patience } });
}, startMs);
afterAll(async () => {
  await web?.[Symbol.asyncDispose]();
}, startMs);

const get = (path: string, accept = 'text/html', headers: Record<string, string> = {}) =>
  fetch(`${web.cluster.url}${path}`, { headers: { accept, ...headers } });

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

test('the web container sends the headers that a replica sends, compressed files, and none that are hidden', async () => {
  const [script = ''] = /\/assets\/[^"]+\.js/.exec(await (await get('/')).text()) ?? [];
  const ofFiles = ['x-content-type-options', 'x-frame-options', 'cross-origin-resource-policy', 'cache-control'];
  const ofPages = [...ofFiles, 'content-security-policy', 'referrer-policy', 'content-type'];
  const headersOf = (answer: Response, names: readonly string[]) =>
    names.map((name) => [name, answer.headers.get(name)?.toLowerCase()]);
  for (const [path, names] of [
    ['/', ofPages],
    ['/dev-org/app/prod', ofPages],
    [script, ofFiles],
    ['/theme.js', ofFiles],
    ['/mark.svg', ofFiles],
  ] as const) {
    const own = await fetch(`${web.cluster.apiUrls[0]}${path}`, { headers: { accept: 'text/html' } });
    expect([path, own.status]).toEqual([path, 200]);
    expect([path, headersOf(await get(path), names)]).toEqual([path, headersOf(own, names)]);
  }
  for (const encoding of ['br', 'gzip']) {
    const answer = await get(script, '*/*', { 'accept-encoding': encoding });
    expect([encoding, answer.headers.get('content-encoding')]).toEqual([encoding, encoding]);
    expect(answer.headers.get('vary')?.toLowerCase()).toContain('accept-encoding');
  }
  expect((await get('/.sources')).status).toBe(404);
});

test(
  'who is signed in is so at every replica, and at none once signed out',
  async () => {
    const page = await web.signIn();
    const cookies = await web.browser.context.cookies(web.cluster.url);
    const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join('; ');
    const ask = () =>
      Promise.all(
        web.cluster.apiUrls.map(async (url) => {
          const headers = { cookie, 'sec-fetch-site': 'same-origin' };
          const answer = await fetch(`${url}/trpc/me.get`, { headers });
          return [answer.status, (await answer.text()).includes('"login":"ada"')];
        }),
      );
    expect(await ask()).toEqual([1, 2, 3].map(() => [200, true]));
    await page.getByRole('heading', { name: 'Stacks', exact: true }).waitFor();
    await runCommand(page, 'Sign out', 'Sign out Session');
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect(await ask()).toEqual([1, 2, 3].map(() => [401, false]));
    await page.close();
  },
  startMs,
);

test(
  'an update that talks to one replica is watched through another',
  async () => {
    const { apiUrls, organization } = web.cluster;
    const [first, second] = apiUrls as [string, string];
    await using scenario = await Scenario.create(withHelpers({ ...web.server, url: first }));
    const { project, workspace } = scenario;
    const page = await web.signIn();
    // Not through the proxy: it gives each new stream of the page to the next replica.
    await page.goto(`${second}/${organization}/${project}/dev`);
    await page.getByText('This stack has not been updated yet').waitFor();
    await workspace.cloud.control({ slowMs: { slow: longMs } });
    await workspace.writeProgram(thingProgram({ project, things: { quick: { value: 'a' }, slow: { value: 'b' } } }));
    const up = await workspace.spawn(['up', ...unattended]);
    await page.getByRole('link', { name: 'View progress' }).click();
    const row = page.getByRole('listitem').filter({ hasText: 'slow' });
    await row.getByText('creating').waitFor();
    await until(async () => (await holderOfStream()) === 1, 'its replica has the stream');
    await workspace.cloud.control({});
    await row.getByText('created').waitFor();
    await page.getByText('Succeeded', { exact: true }).waitFor();
    expect((await up.done).exitCode).toBe(0);
    await page.close();
  },
  startMs,
);

test(
  'processes and queues are shown; a job that was given up is run again by its button, and succeeds',
  async () => {
    const { cluster } = web;
    const page = await web.signIn();
    await page.goto(`${cluster.url}/~/operator/health`);
    const processes = page.getByRole('table', { name: 'Processes' });
    await until(async () => {
      const shown = await processes.getByRole('row').allTextContents();
      const count = (role: string) => shown.filter((text) => text.startsWith(role)).length;
      return count('API') === 3 && count('Worker') === 2;
    }, 'all processes are shown');
    const answering = page.getByText('Responds', { exact: true });
    await until(async () => (await answering.count()) === 3, 'all replicas answer');
    expect(await findFlaws(page)).toEqual([]);
    const update = await startJournal();
    // The one takes as long to be called silent as the other to give up the job.
    await cluster.workers[1]?.kill();
    await cluster.s3.stop();
    const completed = update.complete();
    const silent = processes.getByText(/^No heartbeat for/);
    await until(async () => (await silent.count()) === 1, 'one process is silent');
    await page.goto(`${cluster.url}/~/operator/queues`);
    const jobs = page.getByRole('table', { name: 'Jobs: Small writes' });
    const failed = jobs.getByRole('row').filter({ hasText: 'compact journal' }).filter({ hasText: 'Failed' });
    await failed.first().waitFor();
    expect((await completed).status).toBe(503);
    expect(await findFlaws(page)).toEqual([]);
    expect(await failed.count()).toBe(1);
    await cluster.s3.start();
    await cluster.workers[1]?.start();
    await page.getByRole('button', { name: /^Retry compact journal/ }).click();
    await page.getByRole('button', { name: 'Run it again' }).click();
    await failed.waitFor({ state: 'detached' });
    await until(async () => (await page.getByText('compact journal').count()) === 0, 'the job has ended');
    await page.reload();
    await page.getByRole('heading', { name: 'Small writes' }).waitFor();
    await page.locator('[aria-busy="true"]').first().waitFor({ state: 'detached' });
    expect(await page.getByText('compact journal').count()).toBe(0);
    // What it was for is done.
    expect((await update.complete()).status).toBe(204);
    expect(await update.exported()).toContain('::added"');
    await page.close();
  },
  startMs,
);

// The last: a replica stays dead.
test(
  'pages go on by themselves when the replica dies that holds their streams, and nothing is missing or twice',
  async () => {
    const { organization, url } = web.cluster;
    await using scenario = await Scenario.create(web.server);
    const { project, workspace } = scenario;
    const list = await web.signIn();
    const name = `${project}/dev`;
    await list.goto(`${url}/${organization}`);
    const rowOf = (page: Page) => page.getByRole('row').filter({ hasText: name });
    await rowOf(list).waitFor();
    const page = await list.context().newPage();
    await page.goto(`${url}/${organization}/${name}`);
    await page.getByText('This stack has not been updated yet').waitFor();
    await workspace.cloud.control({ slowMs: { slow: longMs } });
    const things = { quick: { value: 'a' }, slow: { value: 'b' }, third: { value: 'c' } };
    await workspace.writeProgram(thingProgram({ project, things }));
    const up = await workspace.spawn(['up', ...unattended]);
    await page.getByRole('link', { name: 'View progress' }).click();
    const row = page.getByRole('listitem').filter({ hasText: 'slow' });
    await row.getByText('creating').waitFor();
    await rowOf(list).getByText('Updating').waitFor();
    for (const each of [page, list]) await each.evaluate('window.isSamePage = true');
    const holder = await until(async () => (await holderOfStream()) + 1, 'a stream');
    await web.cluster.apis[holder - 1]?.kill();
    await until(async () => (await streams()).some((count) => count > 0), 'a stream to another replica');
    await workspace.cloud.control({});
    await row.getByText('created').waitFor();
    await page.getByText('Succeeded', { exact: true }).waitFor();
    expect((await up.done).exitCode).toBe(0);
    await rowOf(list).getByText('Updated', { exact: true }).waitFor();

    // What was put together from the streams is what a page that was opened now shows.
    const textsOf = async (all: Locator) => (await all.allTextContents()).map(withoutTimes);
    const resourcesOf = (shown: Page) => shown.getByRole('list', { name: 'Resources' }).getByRole('listitem');
    await until(async () => {
      const texts = await textsOf(resourcesOf(page));
      return texts.length >= Object.keys(things).length && texts.every((text) => text.includes('created'));
    }, 'all resources are created');
    for (const [live, shownIn] of [
      [page, resourcesOf],
      [list, rowOf],
    ] as const) {
      const opened = await list.context().newPage();
      await opened.goto(live.url());
      await shownIn(opened).first().waitFor();
      // The number of resources follows some seconds behind, on both.
      await until(
        async () => isDeepStrictEqual(await textsOf(shownIn(live)), await textsOf(shownIn(opened))),
        `${live.url()} shows the same`,
      );
      await opened.close();
    }
    expect(await rowOf(list).count()).toBe(1);
    for (const each of [page, list]) expect(await each.evaluate('window.isSamePage')).toBe(true);

    await page.getByRole('link', { name: 'dev', exact: true }).first().click();
    await page
      .getByRole('link', { name: /^Update 1/ })
      .first()
      .waitFor();
    await page.goto(`${url}/${organization}/${name}?tab=updates`);
    await page.getByRole('link', { name: /^Update 1/ }).waitFor();
    expect(await page.getByRole('region', { name: 'Updates' }).getByRole('listitem').count()).toBe(1);
    await page.goto(`${url}/${organization}/${name}/updates/1?view=events`);
    const facts = page.getByRole('region', { name: 'Events' }).getByText(/^\d+ events$/);
    const events = await countEvents(name);
    await until(async () => (await facts.innerText()) === `${events} events`, 'all events are shown');
    await Promise.all([page.close(), list.close()]);
  },
  startMs,
);

/** A text of a row without how long something took, or how long ago it was. */
function withoutTimes(text: string): string {
  return text.replaceAll(/\d+(\.\d+)? ?(ms|s|min|h)\b( ago)?|just now|now\b/g, '');
}

async function call(path: string, body: object | null, method = 'POST', auth = `token ${web.cluster.token}`) {
  const headers = { authorization: auth, accept: 'application/vnd.pulumi+9', 'content-type': 'application/json' };
  return fetch(`${web.cluster.url}/api/stacks/${web.cluster.organization}/${path}`, {
    ...{ method, headers },
    ...(body === null ? {} : { body: JSON.stringify(body) }),
  });
}

async function read(answer: Promise<Response>) {
  const response = await answer;
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  // biome-ignore lint/suspicious/noExplicitAny: responses of every shape.
  return (await response.json()) as any;
}

/** An update of a new stack whose journal has a resource, and which is not completed yet. */
async function startJournal() {
  await read(call('jobs', { stackName: 'dev' }));
  await read(call('jobs/dev/import', deployment(3)));
  const { updateID } = await read(call('jobs/dev/update', { config: {} }));
  const path = `jobs/dev/update/${updateID}`;
  const { token } = await read(call(path, { journalVersion: 1 }));
  const lease = `update-token ${token}`;
  const entries = creation(1, 'added', { project: 'jobs', stack: 'dev' });
  const appended = await call(`${path}/journalentries`, { entries }, 'PATCH', lease);
  expect(appended.status).toBeLessThan(300);
  return {
    complete: () => call(`${path}/complete`, { status: 'succeeded' }, 'POST', lease),
    exported: async () => JSON.stringify(await read(call('jobs/dev/export', null, 'GET'))),
  };
}

/** How many events the newest update of the stack has, as the API says. */
async function countEvents(stack: string): Promise<number> {
  const { updates } = await read(call(`${stack}/updates?pageSize=1`, null, 'GET'));
  let count = 0;
  for (let more: string | null = ''; more !== null; ) {
    const query: string = more === '' ? '' : `?continuationToken=${encodeURIComponent(more)}`;
    const { continuationToken, events } = await read(
      call(`${stack}/update/${updates[0].updateID}/events${query}`, null, 'GET'),
    );
    count += events.length;
    more = continuationToken ?? null;
  }
  return count;
}

/** The place of the replica that has a stream; -1: none. */
async function holderOfStream(): Promise<number> {
  return (await streams()).findIndex((count) => count > 0);
}

/** Streams of each replica; 0 for one that is dead. */
function streams(): Promise<number[]> {
  return Promise.all(
    web.cluster.apiManagementUrls.map(async (management) => {
      const text = await fetch(`${management}/metrics`).then(
        (answer) => answer.text(),
        () => '',
      );
      return Number(/^holdfast_live_streams (\d+)/m.exec(text)?.[1] ?? 0);
    }),
  );
}
