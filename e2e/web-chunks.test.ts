import { beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { callApiOk } from '../testkit/api-call.ts';
import type { TestBrowser } from '../testkit/chromium.ts';
import type { OwnHoldfastServer } from '../testkit/holdfast-server.ts';
import { scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { until } from '../testkit/until.ts';
import { fileWebServer } from '../testkit/web-server.ts';
import { findFlaws, signIn } from '../testkit/web-session.ts';

await suite('parts of the web UI that cannot be loaded', { ownServer: true, tools: ['chromium'] }, () => {
  const organization = 'dev-org';
  const web = fileWebServer();
  let server: OwnHoldfastServer;
  let browser: TestBrowser;
  let page: Page;
  /** How often the browser asked for a page. */
  let opened: number;

  beforeAll(async () => {
    ({ browser, server } = await web());
    for (const stackName of ['one', 'two']) {
      await callApiOk(server, 'POST', `stacks/${organization}/web`, { stackName, tags: {} });
    }
  }, scenarioTimeoutMs);

  /** A list with a filter that somebody has typed. The browser's cache has no part of other pages. */
  beforeEach(async () => {
    await page?.context().unrouteAll();
    await page?.close();
    ({ page } = await signIn(browser, server.url, 'ada'));
    await page.unrouteAll();
    const session = await page.context().newCDPSession(page);
    await session.send('Network.setCacheDisabled', { cacheDisabled: true });
    await page.goto(`${server.url}/${organization}`);
    await row('web/one').waitFor();
    await filter().fill('on');
    await row('web/two').waitFor({ state: 'detached' });
    await page.evaluate('window.isSamePage = true');
    opened = 0;
    page.on('request', (request) => {
      if (request.isNavigationRequest() && request.frame() === page.mainFrame()) opened++;
    });
  }, scenarioTimeoutMs);

  const filter = () => page.getByPlaceholder(/^Project or stack/);
  const row = (name: string) => page.getByRole('row').filter({ hasText: name });
  const link = () => page.locator('a', { hasText: 'one' }).first();
  const notice = (title: string) => page.getByRole('alert').filter({ hasText: title });
  const heading = () => page.getByRole('heading', { name: 'web/one', exact: true });

  async function expectKept(): Promise<void> {
    expect(await page.evaluate('window.isSamePage')).toBe(true);
    expect(opened).toBe(0);
    expect(await filter().inputValue()).toBe('on');
    expect(await row('web/one').isVisible()).toBe(true);
  }

  /** Answers requests for files as a proxy does whose server is away; returns how many it has answered. */
  async function fail(files: RegExp, status = 502): Promise<() => number> {
    let count = 0;
    await page.route(files, (route) => {
      count++;
      return route.fulfill({ status, contentType: 'text/html', body: '<h1>Bad gateway</h1>' });
    });
    return () => count;
  }

  test(
    'a file that a proxy refuses reloads nothing, and its page is opened on a retry',
    async () => {
      const refused = await fail(/assets\/stack-page-.*\.js/);
      await link().hover();
      await until(async () => refused() > 0, 'it was asked for ahead');
      await link().click();
      await notice('The page could not be loaded').waitFor();
      await until(async () => refused() > 2, 'it was asked for again');
      await expectKept();
      await page.unrouteAll();
      await page.getByRole('alert').getByRole('button', { name: 'Try again' }).click();
      await heading().waitFor();
      await page.getByRole('alert').waitFor({ state: 'detached' });
      expect(await page.evaluate('window.isSamePage')).toBe(true);
      expect(opened).toBe(0);
    },
    scenarioTimeoutMs,
  );

  // Browsers may keep that a file could not be loaded, and ask for it again only after the page is loaded anew.
  test(
    'a page that several retries have not loaded is opened by loading it anew, once',
    async () => {
      const refused = await fail(/assets\/stack-page-.*\.js/);
      await link().click();
      await notice('The page could not be loaded').waitFor();
      await until(async () => opened === 1, 'the page is loaded anew');
      expect(page.url()).toContain(`/${organization}/web/one`);
      const before = refused();
      await notice('Reload the page to go on.').waitFor();
      await until(async () => refused() > before + 4, 'the part was asked for again');
      expect(opened).toBe(1);
    },
    scenarioTimeoutMs,
  );

  test(
    'a page that is slow to arrive is waited for, however often its server answers meanwhile',
    async () => {
      let probed = 0;
      page.on('request', (request) => {
        if (request.url() === `${server.url}/` && !request.isNavigationRequest()) probed++;
      });
      await fail(/assets\/stack-page-.*\.js/);
      await link().click();
      await notice('The page could not be loaded').waitFor();
      const { promise: isThere, resolve: arrive } = Promise.withResolvers<void>();
      let isComing = false;
      // Instead of the refusal: of two, the newer route counts.
      await page.route(/assets\/stack-page-.*\.js/, async (route) => {
        isComing = true;
        await isThere;
        await route.continue();
      });
      await until(async () => isComing, 'it was asked for again');
      const before = probed;
      await until(async () => opened > 0 || probed > before + 4, 'the server has answered several times');
      await expectKept();
      arrive();
      await heading().waitFor();
      expect(await page.evaluate('window.isSamePage')).toBe(true);
      expect(opened).toBe(0);
    },
    scenarioTimeoutMs,
  );

  test(
    'a page whose styles were refused ahead is never shown without them',
    async () => {
      const refused = await fail(/assets\/stack-page-.*\.css/);
      await link().hover();
      await until(async () => refused() > 0, 'they were asked for ahead');
      await link().click();
      await notice('The page could not be loaded').waitFor();
      await expectKept();
      await page.unrouteAll();
      await heading().waitFor();
      const loaded = await page.evaluate(
        `[...document.querySelectorAll('link[rel="stylesheet"]')].some((link) => link.href.includes('/stack-page-') && link.sheet !== null)`,
      );
      expect(loaded).toBe(true);
      expect(opened).toBe(0);
    },
    scenarioTimeoutMs,
  );

  test(
    'after a release, a page is loaded once with the new build, and not again',
    async () => {
      const refused = await fail(/assets\/stack-page-.*\.js/, 404);
      // What the page reads to learn which build the server has.
      await page.route(`${server.url}/`, async (route) => {
        const answer = await route.fetch();
        const body = (await answer.text()).replace(/(src="\/assets\/index-)/, '$1of-another-build-');
        return route.fulfill({ response: answer, body });
      });
      await link().hover();
      await until(async () => refused() > 0, 'it was asked for ahead');
      await expectKept();
      await link().click();
      await until(async () => opened === 1, 'the page is loaded with the new build');
      await notice('A new version of Holdfast is running').waitFor();
      const before = refused();
      await until(async () => refused() > before + 2, 'the part was asked for again');
      expect(opened).toBe(1);
    },
    scenarioTimeoutMs,
  );

  test(
    'a menu or a part of a page that cannot be loaded leaves the rest, and comes on a retry',
    async () => {
      // The palette is loaded ahead soon after the page.
      const refused = await fail(/assets\/(menu-popup|command-palette)-.*\.js/);
      await page.reload();
      await row('web/one').waitFor();
      await page.evaluate('window.isSamePage = true');
      opened = 0;
      const theme = page.getByRole('button', { name: /^Theme/ });
      await theme.hover();
      await until(async () => refused() > 0, 'the menu was asked for ahead');
      await expectKept();
      expect(await page.getByRole('alert').count()).toBe(0);
      await theme.click();
      await notice('A part of this page could not be loaded').waitFor();
      await expectKept();
      await page.unrouteAll();
      await fail(/assets\/command-palette-.*\.js/);
      await page.getByRole('alert').getByRole('button', { name: 'Try again' }).click();
      await page.getByRole('menuitem', { name: 'Dark' }).waitFor();
      await page.keyboard.press('Escape');
      await page.getByRole('menuitem', { name: 'Dark' }).waitFor({ state: 'detached' });
      await page.keyboard.press('Control+k');
      await notice('A part of this page could not be loaded').waitFor();
      await expectKept();
      await page.unrouteAll();
      await page.getByRole('combobox', { name: 'Stack, page or command' }).waitFor();
    },
    scenarioTimeoutMs,
  );

  test(
    'a page keeps what it shows while the server is stopped, says so, and goes on by itself',
    async () => {
      // The browser has no part of this page yet.
      const references = page.getByRole('link', { name: 'References' });
      let failures = 0;
      page.on('requestfailed', (request) => {
        if (request.url().includes('/assets/')) failures++;
      });
      await server.stop();
      // What says so moves the list.
      await page.getByRole('status').filter({ hasText: 'The server does not answer' }).waitFor();
      await until(
        async () => {
          await filter().hover();
          await references.hover();
          return failures > 0;
        },
        'the page has been asked for ahead',
        { everyMs: 500 },
      );
      await expectKept();
      await references.click();
      await notice('The server does not answer').waitFor();
      await expectKept();
      expect(await findFlaws(page)).toEqual([]);
      await server.restart();
      await page.getByRole('heading', { name: 'References' }).waitFor();
      await notice('The server does not answer').waitFor({ state: 'detached' });
      expect(await page.evaluate('window.isSamePage')).toBe(true);
      expect(opened).toBe(0);
    },
    scenarioTimeoutMs,
  );
});
