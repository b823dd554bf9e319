import { beforeAll, expect, test } from '@jest/globals';
import axe, { type AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';
import type { TestBrowser } from '../testkit/chromium.ts';
import type { OwnHoldfastServer } from '../testkit/holdfast-server.ts';
import { suite } from '../testkit/suite.ts';
import { tuned } from '../testkit/tuned.ts';
import { until } from '../testkit/until.ts';
import { fileWebServer } from '../testkit/web-server.ts';
import { runCommand, submitPassword, untilAsWide } from '../testkit/web-session.ts';

/** What a browser may have to fetch before the list of stacks is there, compressed, fonts included. */
const maxFirstLoadBytes = 200_000;
/** How much of a page may move while it is loaded, as browsers count it. */
const maxShift = 0.05;
const markup = '<img src=x onerror=alert(1)>';
const themes = ['light', 'dark'] as const;

async function call(server: OwnHoldfastServer, path: string, body: object, auth = `token ${server.token}`) {
  const headers = { authorization: auth, accept: 'application/vnd.pulumi+9', 'content-type': 'application/json' };
  const response = await fetch(`${server.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return JSON.parse((await response.text()) || '{}') as { updateID: string; token: string };
}

async function createStack(server: OwnHoldfastServer, project: string, stackName: string, tags = {}): Promise<void> {
  await call(server, `/api/stacks/dev-org/${project}`, { stackName, tags });
}

/** An update that runs, or has ended. */
async function update(server: OwnHoldfastServer, stack: string, status: 'running' | 'failed' | 'succeeded') {
  const path = `/api/stacks/dev-org/${stack}/update`;
  const { updateID } = await call(server, path, {
    name: 'p',
    runtime: 'nodejs',
    main: '',
    description: '',
    config: {},
  });
  const { token } = await call(server, `${path}/${updateID}`, {});
  if (status !== 'running')
    await call(server, `${path}/${updateID}/complete`, { status }, `update-token ${token}`).catch(() => {});
  return { lease: `update-token ${token}`, path: `${path}/${updateID}`, updateID };
}

await suite('the web UI', { ownServer: true, tools: ['chromium'] }, () => {
  // The update that is left running must not end by itself.
  const web = fileWebServer({ settings: tuned({ leaseSeconds: 3600 }) });
  let server: OwnHoldfastServer;
  let browser: TestBrowser;
  let page: Page;
  /** What the browser complained about. */
  let complaints: string[];

  beforeAll(async () => {
    ({ browser, server } = await web());
    for (const [project, stack] of [
      ['web', 'dev'],
      ['web', 'prod'],
      ['api', 'prod'],
    ] as const)
      await createStack(server, project, stack);
    await createStack(server, 'search', 'dev', { team: markup, note: '"quoted" & \u202Eturned' });
    await update(server, 'web/prod', 'running');
    await update(server, 'api/prod', 'failed');
    page = await browser.context.newPage();
    page.on('console', (message) => {
      // What a test has kept from the server fails so. The browser may say it later.
      const isCutOff = message.text().includes('ERR_FAILED') && message.location().url.includes('/trpc/');
      if (message.type() === 'error' && !isCutOff && !/status of 40[14]/.test(message.text()))
        complaints.push(message.text());
    });
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('dialog', (dialog) => {
      complaints.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    complaints = [];
  }, 600_000);

  /** Waits until exactly these stacks are shown. */
  async function waitForStacks(...names: string[]): Promise<void> {
    const wanted = [...names].sort().join();
    const shown = async () => (await page.locator('[data-row]').allTextContents()).sort().join() === wanted;
    await until(shown, `the stacks ${wanted} are shown`, { timeoutMs: 120_000 });
  }

  /** Waits for the title of the page; dialogs hide it from readers. */
  async function violations(): Promise<string[]> {
    await page.locator('h1').first().waitFor();
    await page.evaluate(axe.source);
    const run = "axe.run(document, { resultTypes: ['violations'] })";
    const { violations: found } = (await page.evaluate(run)) as AxeResults;
    return found.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
  }

  test('sends who is not signed in to the sign-in page, and back to where they were', async () => {
    await page.goto(`${server.url}/dev-org?text=web`);
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await submitPassword(page, 'ada');
    await page.waitForURL(`${server.url}/dev-org?text=web`);
    await waitForStacks('web/dev', 'web/prod');
  });

  test('shows stacks with what they are doing, and needs less than 200 kB for that', async () => {
    const sizes: Promise<number>[] = [];
    const fresh = await browser.context.newPage();
    const devtools = await browser.context.newCDPSession(fresh);
    await devtools.send('Network.enable');
    await devtools.send('Network.setCacheDisabled', { cacheDisabled: true });
    fresh.on('requestfinished', (request) => {
      if (new URL(request.url()).pathname.startsWith('/trpc')) return;
      sizes.push(request.sizes().then(({ responseBodySize }) => responseBodySize));
    });
    await fresh.goto(server.url, { waitUntil: 'networkidle' });
    // Those of requests that end while the page is closed cannot be read.
    fresh.removeAllListeners('requestfinished');
    const bytes = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
    await fresh.close();
    expect(bytes).toBeGreaterThan(50_000);
    expect(bytes).toBeLessThan(maxFirstLoadBytes);
    await page.goto(server.url);
    await waitForStacks('web/dev', 'web/prod', 'api/prod', 'search/dev');
    const row = (name: string) => page.getByRole('row').filter({ hasText: name });
    expect(await row('web/prod').textContent()).toMatch(/Updating.*ada/);
    expect(await row('web/dev').textContent()).toContain('Never updated');
  });

  test('keeps its filters in the URL', async () => {
    await page.goto(server.url);
    await page.getByLabel('Find a project or stack').fill('prod');
    await waitForStacks('web/prod', 'api/prod');
    await page.waitForURL(`${server.url}/?text=prod`);
    await page.getByRole('link', { name: 'Running' }).click();
    await page.waitForURL(`${server.url}/?text=prod&status=running`);
    await waitForStacks('web/prod');
    const current = page.getByRole('navigation', { name: 'Status' }).locator('[aria-current]');
    expect(await current.allTextContents()).toEqual(['Running']);
    await page.reload();
    await waitForStacks('web/prod');
    await page.goBack();
    await waitForStacks('web/prod', 'api/prod');
    await page.goto(`${server.url}/?text=none-of-them`);
    await page.getByRole('button', { name: 'Show all stacks' }).click();
    await waitForStacks('web/dev', 'web/prod', 'api/prod', 'search/dev');
  });

  test('suggests terms of the filter, and their values', async () => {
    await page.goto(`${server.url}/dev-org`);
    await waitForStacks('web/dev', 'web/prod', 'api/prod', 'search/dev');
    const field = page.getByRole('combobox', { name: 'Find a project or stack' });
    const option = (name: RegExp) => page.getByRole('listbox', { name: 'Suggestions' }).getByRole('option', { name });
    await field.click();
    for (const name of ['owner', 'updated', 'tag', 'project']) await option(new RegExp(`^${name}:`)).waitFor();
    expect(await violations()).toEqual([]);
    await page.keyboard.type('ow');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    expect(await field.inputValue()).toBe('owner:');
    await option(/^ada$/).click();
    await waitForStacks('web/prod');
    expect(await field.inputValue()).toBe('owner:ada ');
    await field.fill('');
    await page.keyboard.type('tag:te');
    await option(/^team$/).waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await waitForStacks('search/dev');
    await page.getByRole('link', { name: 'Remove the filter tag team' }).click();
    await field.fill('project:we');
    await option(/^web$/).click();
    await page.waitForURL(`${server.url}/dev-org?project=web`);
    await waitForStacks('web/dev', 'web/prod');
    expect(await field.inputValue()).toBe('');
  });

  test('shows times relative, or in the zone that the reader chooses', async () => {
    await page.goto(`${server.url}/dev-org`);
    const time = page.locator('main time').first();
    await time.waitFor();
    expect(await time.getAttribute('title')).toMatch(/\b20\d\d\b.*UTC/);
    expect(await time.textContent()).toMatch(/ago|now/);
    const choose = async (name: string): Promise<void> => {
      await page.getByRole('button', { name: 'ada', exact: true }).click();
      await page.getByRole('menuitem', { name }).click();
    };
    await choose('Times in UTC');
    expect(await time.textContent()).toMatch(/\d:\d\d/);
    await page.reload();
    await time.waitFor();
    expect(await time.textContent()).toMatch(/\d:\d\d/);
    await choose('Relative times');
    expect(await time.textContent()).toMatch(/ago|now/);
  });

  test('needs no mouse', async () => {
    await page.goto(`${server.url}/dev-org`);
    await waitForStacks('web/dev', 'web/prod', 'api/prod', 'search/dev');
    await page.keyboard.press('/');
    await page.keyboard.type('web/');
    await waitForStacks('web/dev', 'web/prod');
    await page.keyboard.press('ArrowDown');
    const first = await page.locator(':focus').textContent();
    await page.keyboard.press('j');
    const second = await page.locator(':focus').textContent();
    expect([first, second].sort()).toEqual(['web/dev', 'web/prod']);
    await page.keyboard.press('k');
    expect(await page.locator(':focus').textContent()).toBe(first);
    await page.keyboard.press('Enter');
    await page.waitForURL(`${server.url}/dev-org/${first}`);
    await runCommand(page, 'api', 'dev-org/api/prod');
    await page.waitForURL(`${server.url}/dev-org/api/prod`);
  });

  test('shows names and tags as text', async () => {
    await page.goto(`${server.url}/?tag=${encodeURIComponent(`team=${markup}`)}`);
    await waitForStacks('search/dev');
    expect(await page.getByText(markup, { exact: true }).count()).toBeGreaterThan(0);
    expect(await page.locator('main img').count()).toBe(0);
    await page.goto(`${server.url}/${encodeURIComponent(markup)}`);
    await page.getByRole('heading', { name: 'Page not found' }).waitFor();
    expect(await page.locator('main img').count()).toBe(0);
  });

  test('keeps the chosen theme and the favorites', async () => {
    await page.emulateMedia({ colorScheme: 'light' });
    await page.goto(server.url);
    const background = () => page.evaluate('getComputedStyle(document.documentElement).backgroundColor');
    const light = await background();
    await waitForStacks('web/dev', 'web/prod', 'api/prod', 'search/dev');
    await runCommand(page, 'dark theme', 'Dark theme');
    await page.locator('html[data-theme="dark"]').waitFor({ state: 'attached' });
    expect(await background()).not.toBe(light);
    await page.getByRole('button', { name: 'Favorite dev-org/web/dev' }).click();
    await page.reload();
    await page.getByRole('navigation', { name: 'Favorites' }).getByRole('link', { name: 'web/dev' }).waitFor();
    expect(await background()).not.toBe(light);
    // Another user of the same browser sees none of them.
    await page.evaluate(
      `localStorage.setItem('holdfast.favorites', localStorage.getItem('holdfast.favorites').replace(/"login":"[^"]+"/, '"login":"eve"'))`,
    );
    await page.reload();
    await waitForStacks('web/dev', 'web/prod', 'api/prod', 'search/dev');
    await page.locator('button[aria-label="Favorite dev-org/web/dev"][aria-pressed="false"]').waitFor();
    expect(await page.getByRole('navigation', { name: 'Favorites' }).count()).toBe(0);
    await page.evaluate('localStorage.clear()');
  });

  test.each(themes)('has no barriers in the %s theme', async (colorScheme) => {
    const found: string[] = [];
    await page.emulateMedia({ colorScheme });
    await page.goto(server.url);
    await waitForStacks('web/dev', 'web/prod', 'api/prod', 'search/dev');
    found.push(...(await violations()));
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Stack, page or command' }).waitFor();
    found.push(...(await violations()));
    for (const path of ['/?text=none', '/no-such-organization', '/account', '/sign-in']) {
      await page.goto(`${server.url}${path}`, { waitUntil: 'networkidle' });
      found.push(...(await violations()).map((each) => `${path} ${each}`));
    }
    expect(found).toEqual([]);
  });

  test('fits on a phone', async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    await page.goto(server.url);
    await waitForStacks('web/dev', 'web/prod', 'api/prod', 'search/dev');
    await untilAsWide(page, 390);
    expect(await violations()).toEqual([]);
    await page.getByRole('button', { name: 'Open the navigation' }).click();
    await page.getByRole('dialog').getByRole('link', { name: 'Stacks' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.setViewportSize({ width: 1440, height: 900 });
  });

  test('does not move while it is loaded', async () => {
    /** The shift of a page that is loaded anew. */
    const load = async (address: string): Promise<number> => {
      await page.goto(`${server.url}${address}`, { waitUntil: 'networkidle' });
      await page.locator('main h1, main h2').first().waitFor();
      await page.locator('main [data-loading]').first().waitFor({ state: 'detached' });
      return page.evaluate<number>(
        `new Promise((resolve) => {
          let sum = 0;
          new PerformanceObserver((list) => {
            for (const { hadRecentInput, value } of list.getEntries()) if (!hadRecentInput) sum += value;
          }).observe({ type: 'layout-shift', buffered: true });
          requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => resolve(sum))));
        })`,
      );
    };
    // Parts of a page do not wait longer than 4 s for others, by an animation. A busy machine may need more.
    const devtools = await browser.context.newCDPSession(page);
    await devtools.send('Animation.enable');
    await devtools.send('Animation.setPlaybackRate', { playbackRate: 0.01 });
    const moved: string[] = [];
    for (const address of [
      ...['/', '/dev-org/web/prod', '/dev-org/web/prod?tab=access', '/dev-org/api/prod/updates/1?view=details'],
      ...['/dev-org/~/ci?view=refusals', '/dev-org/~/rules', '/dev-org/~/tokens', '/~/operator/tasks'],
    ]) {
      const shift = await load(address);
      if (shift > maxShift) moved.push(`${address} ${shift}`);
    }
    await devtools.detach();
    expect(moved).toEqual([]);
  });

  test('says that the server does not answer, and goes on when it does', async () => {
    await page.goto(server.url);
    await waitForStacks('web/dev', 'web/prod', 'api/prod', 'search/dev');
    await page.route('**/trpc/**', (route) => route.abort());
    await page.getByRole('link', { name: 'Failed' }).click();
    await page.getByRole('heading', { name: 'The server does not answer' }).waitFor();
    await page.unroute('**/trpc/**');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page
      .getByText(/No stack matches|api\/prod/)
      .first()
      .waitFor();
  });

  test('keeps its layout with names as long as they may be', async () => {
    const [project, stack] = [`p${'x'.repeat(98)}1`, `s${'y'.repeat(98)}2`];
    const tags = { note: 'v'.repeat(256), words: '\u0627\u0644\u0633\u0644\u0627\u0645 english 123' };
    await createStack(server, project, stack, tags);
    const environment = { 'git.headName': `refs/heads/${'b'.repeat(200)}`, 'git.head': 'c'.repeat(40) };
    const path = `/api/stacks/dev-org/${project}/${stack}/update`;
    const metadata = { message: 'A message without an end. '.repeat(80), environment };
    const { updateID } = await call(server, path, { config: {}, metadata });
    const { token } = await call(server, `${path}/${updateID}`, {});
    const auth = `update-token ${token}`;
    const metadataOf = (urn: string) => ({ op: 'create', urn, type: 't:i:T', old: null, new: null, logical: true });
    const urns = ['one', 'two'].map((name) => `urn:pulumi:s::p::t:i:T::${'a-long-name-'.repeat(30)}${name}`);
    const events = urns.map((urn, sequence) => ({
      ...{ sequence, timestamp: 1_780_000_000, resourcePreEvent: { metadata: metadataOf(urn), planning: false } },
    }));
    await call(server, `${path}/${updateID}/events/batch`, { events }, auth);
    await call(server, `${path}/${updateID}/complete`, { status: 'failed' }, auth).catch(() => {});
    const own = `/dev-org/${project}/${stack}`;
    const isInSight = (text: string): Promise<boolean> =>
      page.evaluate(
        `(() => { const ends = [...document.querySelectorAll('main span')].filter((e) => e.childElementCount === 0 && e.textContent.endsWith(${JSON.stringify(text)}));
          return ends.some((e) => e.scrollWidth <= e.clientWidth || getComputedStyle(e).overflow === 'visible'); })()`,
      );
    for (const [address, shown, end] of [
      ['/dev-org', page.getByRole('link', { name: `${project}/${stack}` }), 'y2'],
      ['/~/attention', page.getByRole('link', { name: `${project}/${stack}` }), null],
      ['/dev-org/~/activity', page.getByRole('link', { name: `${project}/${stack}` }), null],
      [own, page.getByRole('heading', { name: 'Outputs' }), null],
      [`${own}/updates/1`, page.getByRole('button', { name: 'Show the whole message' }), 'two'],
      [`${own}/updates/1?view=timing`, page.getByText('Critical path', { exact: true }), 'two'],
      [`${own}/updates/1?view=details`, page.getByRole('heading', { name: 'Environment' }), null],
    ] as const) {
      await page.goto(`${server.url}${address}`);
      await shown.first().waitFor();
      for (const width of [1440, 390, 320]) {
        await page.setViewportSize({ width, height: 844 });
        await untilAsWide(page, width);
      }
      // Names of a program differ at their ends.
      await page.setViewportSize({ width: 1440, height: 900 });
      if (end !== null) await until(() => isInSight(end), `a name is shown up to its end on ${address}`);
    }
    const message = page.getByText('A message without an end.').first();
    const height = async () => (await message.locator('..').boundingBox())?.height ?? 0;
    await until(async () => (await height()) < 120, 'the beginning of the message is shown');
    const more = page.getByRole('button', { name: 'Show the whole message' });
    await more.click();
    await until(async () => (await height()) > 150, 'the whole message is shown');
    await page.getByRole('button', { name: 'Show less' }).and(page.locator(':focus')).waitFor();

    await page.goto(`${server.url}/dev-org`);
    await page.getByRole('link', { name: `${project}/${stack}` }).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: `${project}/${stack}` }).focus();
    const shownName = "getComputedStyle(document.querySelector(':focus [data-full]'), '::after').content";
    expect(await page.evaluate(shownName)).toContain(stack);
  });

  test('a search in the events of an update goes on to its oldest', async () => {
    await createStack(server, 'events', 'dev');
    const { lease, path, updateID } = await update(server, 'events/dev', 'running');
    // Three pages of the list.
    const events = Array.from({ length: 600 }, (_, at) => ({
      ...{ sequence: at + 1, timestamp: 1_700_000_000 + at },
      stdoutEvent: { message: at === 0 ? 'the needle' : `straw ${at}`, color: 'never' },
    }));
    await call(server, `${path}/events/batch`, { events }, lease);
    await page.goto(`${server.url}/dev-org/events/dev/previews/${updateID}?view=events`);
    await page.getByText('200 newest events').waitFor();
    await page.getByLabel('Search in events').fill('needle');
    await page.getByText('the needle').waitFor();
    await page.getByText('1 event', { exact: true }).waitFor();
    await page.getByLabel('Search in events').fill('');
    await page.getByText('600 events', { exact: true }).waitFor();
  });

  test('gives the browser nothing to complain about', () => expect(complaints).toEqual([]));
});
