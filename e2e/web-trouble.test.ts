import { beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { Locator, Page } from 'playwright-core';
import { callApiOk } from '../testkit/api-call.ts';
import type { TestBrowser } from '../testkit/chromium.ts';
import type { OwnHoldfastServer } from '../testkit/holdfast-server.ts';
import { scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { until } from '../testkit/until.ts';
import { fileWebServer } from '../testkit/web-server.ts';
import { enter, findFlaws, signIn } from '../testkit/web-session.ts';

/** More rows than a window has room for, and fewer than a page of the list. */
const stackCount = 60;
const refusals = {
  FORBIDDEN: { status: 403, message: 'Only admins may do this' },
  NOT_FOUND: { status: 404, message: 'The stack does not exist' },
  TOO_MANY_REQUESTS: { status: 429, message: 'Too many requests of this session' },
  SERVICE_UNAVAILABLE: { status: 503, message: 'The database does not answer' },
} as const;

await suite('the web UI when reads fail, in two tabs, and on paper', { ownServer: true, tools: ['chromium'] }, () => {
  const organization = 'dev-org';
  const web = fileWebServer();
  let server: OwnHoldfastServer;
  let browser: TestBrowser;
  let page: Page;
  let refused: string[];

  beforeAll(async () => {
    ({ browser, server } = await web());
    for (let at = 0; at < stackCount; at++) {
      await callApiOk(server, 'POST', `stacks/${organization}/many`, { stackName: `s${at}`, tags: {} });
    }
    await browser.context.clock.install();
    ({ page, refused } = await signIn(browser, server.url, 'ada'));
  }, scenarioTimeoutMs);

  const open = (path: string) => page.goto(`${server.url}/${organization}${path}`);
  const heading = (name: string) => page.getByRole('heading', { name, exact: true });
  /** What browsers do when somebody comes back to a tab: the page is read again. */
  const comeBack = (of: Page = page) => of.evaluate("dispatchEvent(new Event('visibilitychange'))");
  const answers = () => page.unroute('**/trpc/**');

  beforeEach(answers);

  /** Waits for what a page shows when its attempts have failed. Its own time passes faster meanwhile. */
  const shows = (content: Locator): Promise<unknown> => {
    let leftMs = 60_000;
    return until(async () => {
      if (await content.isVisible()) return true;
      if (leftMs > 0) await browser.context.clock.fastForward(500);
      leftMs -= 500;
      return false;
    }, `${content} is shown`);
  };

  /** More than a slow machine needs to pause a clock. */
  const aheadMs = 10_000;

  /** Waits for what a page does by itself within half a minute of its own time, which passes faster. */
  async function goesOn(content: Locator, { isGone = false } = {}): Promise<void> {
    const { clock } = browser.context;
    await clock.pauseAt(((await page.evaluate('Date.now()')) as number) + aheadMs);
    let leftMs = 30_000 - aheadMs;
    const look = async (): Promise<boolean> => {
      if ((await content.isVisible()) !== isGone) return true;
      const ms = leftMs > 0 ? 500 : 1;
      leftMs -= ms;
      await clock.runFor(ms);
      return false;
    };
    await until(look, `${content} is ${isGone ? 'gone' : 'shown'}`).finally(() => clock.resume());
  }

  async function refuse(code: keyof typeof refusals): Promise<void> {
    const { message, status } = refusals[code];
    const data = { code, httpStatus: status, kind: 'test', retryAfterSeconds: null, path: null, span: null };
    const body = JSON.stringify({ error: { message, code: -32_000, data } });
    await page.route('**/trpc/**', (route) => route.fulfill({ status, contentType: 'application/json', body }));
  }

  test(
    'a page keeps what it shows, says that it may be old, and goes on by itself',
    async () => {
      const notice = page.getByText('Parts of this page could not be refreshed');
      for (const [path, content] of [
        ['/~/members', page.getByRole('row').filter({ hasText: 'ada' })],
        ['/~/rules', page.getByText('Nothing is frozen')],
        ['/~/approvals', page.getByText('No pending requests')],
      ] as const) {
        await open(path);
        await content.waitFor();
        await refuse('SERVICE_UNAVAILABLE');
        await comeBack();
        await shows(notice);
        await page.getByText(refusals.SERVICE_UNAVAILABLE.message).first().waitFor();
        expect(await content.isVisible()).toBe(true);
        if (path === '/~/members') expect(await findFlaws(page)).toEqual([]);
        await answers();
        await goesOn(notice, { isGone: true });
      }
      expect(refused).toEqual([]);
    },
    scenarioTimeoutMs,
  );

  test(
    'a page that has nothing to show says why, and goes on by itself',
    async () => {
      const problems = [
        ['SERVICE_UNAVAILABLE', 'Temporarily unavailable'],
        ['TOO_MANY_REQUESTS', 'Too many requests'],
        [null, 'The server does not answer'],
      ] as const;
      for (const [code, title] of problems) {
        await (code === null ? page.route('**/trpc/**', (route) => route.abort()) : refuse(code));
        await open('/~/teams');
        await shows(heading(title));
        expect(await findFlaws(page)).toEqual([]);
        await answers();
        await goesOn(heading('Teams'));
      }
      const page502 = { status: 502, contentType: 'text/html', body: '<html><h1>502 Bad Gateway</h1></html>' };
      await page.route('**/trpc/**', (route) => route.fulfill(page502));
      await open('/~/teams');
      await shows(page.getByText('A proxy answered in place of the server (status 502).'));
      await answers();
      await goesOn(heading('Teams'));
      // What is shown stays, and no call of the page is due.
      const notice = page.getByText('The server does not answer');
      expect(await notice.count()).toBe(0);
      await page.route('**/healthz', (route) => route.fulfill(page502));
      await page.route('**/trpc/me.get', (route) => route.fulfill(page502));
      await shows(notice);
      expect(await heading('Teams').isVisible()).toBe(true);
      await page.unroute('**/healthz');
      await answers();
      await page.unroute('**/trpc/me.get');
      await goesOn(notice, { isGone: true });
      // It has to know who asks before it shows anything.
      await refuse('SERVICE_UNAVAILABLE');
      await page.goto(`${server.url}/~/operator/health`);
      await shows(heading('Temporarily unavailable'));
      await answers();
      await goesOn(heading('Temporarily unavailable'), { isGone: true });
    },
    scenarioTimeoutMs,
  );

  test(
    'what may not be seen, or is gone meanwhile, is not shown any longer, and there is a way out',
    async () => {
      for (const [code, title] of [
        ['FORBIDDEN', 'You do not have access'],
        ['NOT_FOUND', 'Page not found'],
      ] as const) {
        await open('/many/s1');
        await heading('many/s1').waitFor();
        await refuse(code);
        await comeBack();
        await heading('many/s1').waitFor({ state: 'detached' });
        await heading(title).waitFor();
        await answers();
        await page.getByRole('link', { name: 'Go to the stacks' }).click();
        await page.locator('[data-row]').first().waitFor();
      }
    },
    scenarioTimeoutMs,
  );

  test(
    'an open form keeps what was typed when the page behind it cannot be read, or the session has ended',
    async () => {
      await open('/~/rules');
      await page.getByRole('button', { name: 'Freeze', exact: true }).click();
      const note = page.getByRole('dialog').getByLabel(/^Note/);
      await note.fill('Half of a sentence');
      await refuse('SERVICE_UNAVAILABLE');
      await comeBack();
      await shows(page.getByText(refusals.SERVICE_UNAVAILABLE.message).first());
      expect(await note.inputValue()).toBe('Half of a sentence');
      await answers();
      const other = await browser.context.newPage();
      await other.goto(server.url);
      await other.getByRole('button', { name: 'ada' }).click();
      await other.getByRole('menuitem', { name: 'Sign out' }).click();
      await other.getByRole('heading', { name: 'Sign in' }).waitFor();
      await comeBack();
      await page.getByRole('dialog').getByText('Your session has ended. Sign in').waitFor();
      expect(await note.inputValue()).toBe('Half of a sentence');
      await enter(other, server.url, 'ada');
      await other.close();
      await comeBack();
      await page.getByRole('dialog').getByText('Your session has ended. Sign in').waitFor({ state: 'detached' });
      expect(await note.inputValue()).toBe('Half of a sentence');
      expect(refused).toEqual([]);
    },
    scenarioTimeoutMs,
  );

  test(
    'two tabs have the same theme and favorites, and both leave when the session ends in one',
    async () => {
      const other = await browser.context.newPage();
      await open('/many/s2');
      await other.goto(`${server.url}/${organization}`);
      await other.getByRole('button', { name: /^Theme/ }).waitFor();
      await page.getByRole('button', { name: /^Theme/ }).click();
      await page.getByRole('menuitem', { name: 'Dark' }).click();
      await other.getByRole('button', { name: 'Theme: Dark' }).waitFor();
      expect(await other.evaluate('document.documentElement.dataset.theme')).toBe('dark');
      await page.getByRole('button', { name: 'Theme: Dark' }).click();
      await page.getByRole('menuitem', { name: 'Same as system' }).click();
      await until(async () => {
        return (await other.evaluate('document.documentElement.dataset.theme')) === undefined;
      }, 'the theme is that of the system');
      await page.getByRole('button', { name: 'Add to favorites' }).click();
      await other.getByRole('navigation', { name: 'Favorites' }).getByText('many/s2').waitFor();
      await page.getByRole('button', { name: 'ada' }).click();
      await page.getByRole('menuitem', { name: 'Sign out' }).click();
      await heading('Sign in').waitFor();
      await comeBack(other);
      await other.getByRole('heading', { name: 'Sign in' }).waitFor();
      await other.close();
      await enter(page, server.url, 'ada');
    },
    scenarioTimeoutMs,
  );

  test(
    'a long list is printed with all its rows, one below the other',
    async () => {
      await open('');
      await page.locator('[data-row]').first().waitFor();
      const rows = page.locator('[data-window-rows] > *');
      expect(await rows.count()).toBeLessThan(stackCount);
      await page.emulateMedia({ media: 'print' });
      await page.evaluate("dispatchEvent(new Event('beforeprint'))");
      await until(async () => (await rows.count()) === stackCount, 'all rows are there');
      const places = (await page.evaluate(
        `[...document.querySelectorAll('[data-window-rows] > *')].map((row) => row.getBoundingClientRect()).map(({ top, bottom }) => ({ top, bottom }))`,
      )) as { top: number; bottom: number }[];
      for (const [at, { top }] of places.entries())
        expect(top).toBeGreaterThanOrEqual((places[at - 1]?.bottom ?? Number.NEGATIVE_INFINITY) - 1);
      await page.evaluate("dispatchEvent(new Event('afterprint'))");
      await page.emulateMedia({ media: null });
      await until(async () => (await rows.count()) < stackCount, 'rows out of view are gone');
    },
    scenarioTimeoutMs,
  );
});
