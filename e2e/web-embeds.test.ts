import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { beforeAll, expect, test } from '@jest/globals';
import type { Locator, Page } from 'playwright-core';
import { runAdmin } from '../testkit/admin-command.ts';
import type { TestBrowser } from '../testkit/chromium.ts';
import type { OwnHoldfastServer } from '../testkit/holdfast-server.ts';
import { scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { until } from '../testkit/until.ts';
import { expectSound, fileWebServer } from '../testkit/web-server.ts';
import { filePage } from '../testkit/web-session.ts';

const organization = 'dev-org';
const { version } = JSON.parse(await readFile(path.join(import.meta.dirname, '../package.json'), 'utf8')) as {
  version: string;
};

await suite('figures, next steps, and what is shown elsewhere', { ownServer: true, tools: ['chromium'] }, () => {
  const web = fileWebServer({ viewers: ['vera'] });
  let server: OwnHoldfastServer;
  let browser: TestBrowser;
  let page: Page;
  const stackPage = () => `${server.url}/${organization}/web/prod`;
  const { complaints, confirm, dialog, openPage, signInAs } = filePage();

  async function call(method: string, at: string, body: object, auth = `token ${server.token}`) {
    const response = await fetch(`${server.url}/api/stacks/${organization}/web${at}`, {
      method,
      headers: { accept: 'application/vnd.pulumi+8', authorization: auth, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${at}: ${response.status} ${text}`);
    return JSON.parse(text || '{}') as { readonly updateID: string; readonly token: string };
  }

  /** An update that ends at once. */
  async function run(stack: string, status: string): Promise<void> {
    const { updateID } = await call('POST', `/${stack}/update`, {});
    const { token } = await call('POST', `/${stack}/update/${updateID}`, {});
    await call('POST', `/${stack}/update/${updateID}/complete`, { status }, `update-token ${token}`);
  }

  beforeAll(async () => {
    ({ browser, server } = await web());
    await call('POST', '', { stackName: 'prod' });
    await run('prod', 'succeeded');
    page = await openPage(browser, server.url);
  }, scenarioTimeoutMs);

  /** Creates one, and returns the text of the dialog. */
  async function create(kind: 'badge' | 'feed'): Promise<string> {
    await page.getByRole('button', { name: `Create a ${kind}`, exact: true }).click();
    const text = await dialog().locator('pre').innerText();
    // Not stretched to the width of the dialog.
    if (kind === 'badge') expect((await dialog().locator('img').boundingBox())?.width).toBeLessThan(250);
    await expectSound(page);
    await dialog().getByRole('button', { name: 'Done' }).click();
    return text;
  }

  test(
    'a badge is created on the page of its stack, shown by a README, and revoked',
    async () => {
      await page.goto(stackPage());
      await page.getByRole('heading', { name: 'Badges and feeds' }).waitFor();
      const markdown = await create('badge');
      const [, image = '', target] = /^\[!\[Pulumi\]\((.*)\)\]\((.*)\)$/.exec(markdown) ?? [];
      expect(target).toBe(stackPage());
      // A page of another site, where nobody is signed in.
      const site = createServer((_request, response) => {
        response.writeHead(200, { 'content-type': 'text/html' }).end(`<img alt="status" src="${image}">`);
      });
      await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
      const readme = await browser.context.newPage();
      await readme.goto(`http://127.0.0.1:${(site.address() as AddressInfo).port}/`);
      const drawn =
        'Promise.all([...document.images].map(async (image) => (await image.decode(), image.naturalWidth)))';
      expect(((await readme.evaluate(drawn)) as number[])[0]).toBeGreaterThan(80);
      await readme.close();
      site.close();
      expect(await (await fetch(image)).text()).toContain('pulumi: succeeded');
      await page.getByRole('button', { name: 'Revoke the badge of ada' }).click();
      await confirm('Revoke the badge');
      await page.getByRole('button', { name: 'Revoke the badge of ada' }).waitFor({ state: 'detached' });
      expect((await fetch(image)).status).toBe(404);
      expect(complaints).toEqual([]);
    },
    scenarioTimeoutMs,
  );

  test(
    'an admin has a feed of all stacks; a viewer is offered none',
    async () => {
      await page.goto(`${server.url}/${organization}/~/webhooks`);
      const address = await create('feed');
      expect(await (await fetch(address)).text()).toContain('<title>web/prod: Update 1 succeeded</title>');
      await page.getByRole('button', { name: 'Revoke the feed of ada' }).waitFor();
      await expectSound(page);
      await signInAs('vera');
      await page.goto(stackPage());
      await page.getByRole('heading', { name: 'On your machine' }).waitFor();
      expect(await page.getByRole('heading', { name: 'Badges and feeds' }).count()).toBe(0);
      await signInAs('ada');
      expect(complaints).toEqual([]);
    },
    scenarioTimeoutMs,
  );

  test(
    'after the first update, an admin sees what a team needs next, done or not, until it is dismissed',
    async () => {
      let isAsked = false;
      const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
      await page.route(/setup\.list/, async (route) => {
        isAsked = true;
        await answered;
        await route.continue();
      });
      const row = page.getByRole('row').filter({ hasText: 'web/prod' });
      const steps = page.getByRole('region', { name: 'Next steps' });
      const top = async (part: Locator) => (await part.boundingBox())?.y ?? Number.NaN;
      await page.goto(`${server.url}/${organization}`);
      // The list does not wait for the steps, and they do not move it when they come.
      await row.waitFor();
      await until(() => isAsked, 'the steps are asked for');
      const shown = await top(row);
      answer();
      await steps.waitFor();
      await page.unroute(/setup\.list/);
      expect(await top(row)).toBe(shown);
      expect(await top(steps)).toBeGreaterThan(shown);
      const texts = async () => (await steps.getByRole('listitem').allInnerTexts()).map((text) => text.trim());
      expect(await texts()).toEqual([
        expect.stringMatching(/^Invite your team/),
        expect.stringMatching(/^Trust your CI/),
        expect.stringMatching(/^Set rules for updates/),
      ]);
      // vera is a member already.
      await steps.getByText('1 of 3 done').waitFor();
      expect(
        await steps
          .getByRole('listitem')
          .filter({ has: page.getByRole('img', { name: 'Done:' }) })
          .count(),
      ).toBe(1);
      await expectSound(page);
      await steps.getByRole('link', { name: 'Trust your CI' }).click();
      await page.getByRole('heading', { name: 'Trust policies' }).waitFor();
      await page.goBack();
      await row.waitFor();
      expect(await top(steps)).toBeLessThan(await top(row));
      await steps.getByRole('button', { name: 'Dismiss the next steps' }).click();
      await steps.waitFor({ state: 'detached' });
      await page.reload();
      await row.waitFor();
      expect(await steps.count()).toBe(0);
      expect(complaints).toEqual([]);
    },
    scenarioTimeoutMs,
  );

  test(
    'the trends of a stack name long updates, are a table too, and are saved as CSV',
    async () => {
      for (let at = 0; at < 8; at++) await run('prod', at === 5 ? 'failed' : 'succeeded');
      // Updates that take as long would take a test as long.
      await page.route(/updates\.trend/, async (route) => {
        const response = await route.fetch();
        const results = (await response.json()) as {
          result: { data: { items?: { version: number; seconds: number; resources: number }[] } };
        }[];
        for (const { result } of results)
          for (const item of result.data.items ?? []) {
            item.seconds = item.version === 4 ? 900 : 60;
            item.resources = 10 * item.version;
          }
        await route.fulfill({ response, json: results });
      });
      await page.goto(`${stackPage()}?tab=trends`);
      await page.getByRole('heading', { name: 'Unusually long' }).waitFor();
      await page.getByText('Half of the updates took 1 min.').waitFor();
      await page.getByRole('figure').filter({ hasText: 'Resources by version' }).getByText('now 90').waitFor();
      await page.getByRole('listitem').filter({ hasText: 'Update 4 took 15 min' }).waitFor();
      const table = page.getByRole('table', { name: 'Updates' });
      expect(await table.getByRole('row').count()).toBe(10);
      expect(await table.getByRole('row').nth(3).innerText()).toMatch(/^Update 7\s+Failed\s+1 min\s/);
      await expectSound(page);
      const saved = page.waitForEvent('download');
      await page.getByRole('button', { name: 'CSV' }).click();
      const file = await saved;
      expect(file.suggestedFilename()).toBe('web-prod-updates.csv');
      const lines = (await readFile(await file.path(), 'utf8')).split('\r\n');
      expect(lines[0]).toBe('version,kind,status,ended,seconds,seconds in queue,resources');
      expect(lines[4]).toMatch(/^4,update,succeeded,\d{4}-[^,]*Z,900,0,40$/);
      // Waits for a response that is being changed.
      await page.unrouteAll({ behavior: 'wait' });
      await table.getByRole('link', { name: 'Update 4' }).click();
      await page.getByRole('heading', { name: /^Update 4/ }).waitFor();
      expect(complaints).toEqual([]);
    },
    scenarioTimeoutMs,
  );

  test(
    'a filter is saved as a view, shared, opened from the sidebar, renamed and deleted',
    async () => {
      // What is not a filter is not saved.
      await page.goto(`${server.url}/${organization}?status=failed&text=web&from=chat`);
      const open = () => page.getByRole('button', { name: 'Views', exact: true }).click();
      const pinned = (name: string) => page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name });
      const isAt = (at: string, search: Readonly<Record<string, string>>) => (url: URL) =>
        url.pathname === `/${organization}${at}` &&
        Object.entries(search).every(([key, value]) => url.searchParams.get(key) === value);
      const close = () => dialog().getByRole('button', { name: 'Close' }).click();
      await open();
      await dialog().getByLabel('Name of this view').fill('Failed on the web');
      await dialog().getByRole('button', { name: 'Save', exact: true }).click();
      await dialog().getByRole('link', { name: 'Failed on the web' }).waitFor();
      await dialog().getByRole('button', { name: 'Share Failed on the web', pressed: false }).click();
      await dialog().getByRole('button', { name: 'Share Failed on the web', pressed: true }).waitFor();
      await expectSound(page);
      await close();
      await page.goto(`${server.url}/${organization}/~/activity`);
      await pinned('Failed on the web').click();
      await page.waitForURL(isAt('', { text: 'web', status: 'failed' }));
      await expectSound(page);

      // Its author replaces the filters by the ones of the page.
      await page.goto(`${server.url}/${organization}?status=drifted`);
      await open();
      await dialog().getByRole('button', { name: 'Update Failed on the web' }).click();
      await dialog().getByText('All members then see the filters of this page.').waitFor();
      await expectSound(page);
      await dialog().getByRole('button', { name: 'Update the view' }).click();
      await dialog().getByRole('button', { name: 'Update Failed on the web' }).waitFor({ state: 'detached' });
      await close();
      await page.goto(`${server.url}/${organization}/~/activity`);
      await pinned('Failed on the web').click();
      await page.waitForURL((url) => url.search === '?status=drifted');

      // Another member pins it; only its author renames it.
      await signInAs('vera');
      await page.goto(`${server.url}/${organization}/~/ci?view=runs&days=30`);
      await open();
      await dialog().getByText('Stacks, shared by ada').waitFor();
      expect(
        await dialog()
          .getByRole('button', { name: /^(Rename|Delete|Share|Update) Failed/ })
          .count(),
      ).toBe(0);
      await dialog().getByRole('button', { name: 'Pin Failed on the web', pressed: false }).click();
      await dialog().getByLabel('Name of this view').fill('Runs of a month');
      await dialog().getByRole('button', { name: 'Save', exact: true }).click();
      await dialog().getByRole('link', { name: 'Runs of a month' }).waitFor();
      await close();
      await pinned('Failed on the web').click();
      await page.getByRole('heading', { level: 1, name: organization }).waitFor();
      await pinned('Runs of a month').click();
      await page.waitForURL(isAt('/~/ci', { view: 'runs', days: '30' }));
      await page.getByRole('link', { name: '30 days', exact: true }).and(page.locator('[aria-current]')).waitFor();

      // A member of several organizations has the views of all of them on the list of all stacks.
      await runAdmin(server, 'create-organization', 'second');
      await runAdmin(server, 'add-member', 'ada', '--organization', 'second');
      await signInAs('ada');
      await page.goto(`${server.url}/?text=web`);
      await pinned('Failed on the web').waitFor();
      await open();
      await dialog().getByText(`${organization}: Stacks, shared`).waitFor();
      await dialog().getByLabel('Name of this view').fill('Elsewhere');
      expect(await dialog().getByRole('button', { name: 'Save', exact: true }).isEnabled()).toBe(false);
      await dialog().getByLabel('Organization', { exact: true }).selectOption('second');
      await dialog().getByLabel('Share with the members of second').waitFor();
      await expectSound(page);
      await dialog().getByRole('button', { name: 'Save', exact: true }).click();
      await dialog().getByText('second: Stacks').waitFor();
      await close();
      await pinned('Elsewhere').click();
      await page.waitForURL((url) => url.pathname === '/second' && url.search === '?text=web');
      await pinned('Failed on the web').waitFor({ state: 'detached' });

      await page.goto(`${server.url}/${organization}`);
      await pinned('Failed on the web').waitFor();

      // Nothing of an organization is shown as another one's, which is slow.
      const row = page.getByRole('row').filter({ hasText: 'web/prod' });
      await row.waitFor();
      const { promise: isSeen, resolve: answer } = Promise.withResolvers<void>();
      await page.route(/stacks\.list/, async (route) => {
        await isSeen;
        await route.continue();
      });
      await page.getByRole('button', { name: /^Organization:/ }).click();
      await page.getByRole('menuitem', { name: 'second' }).click();
      await page.getByRole('heading', { level: 1, name: 'second' }).waitFor();
      expect(await row.count()).toBe(0);
      answer();
      await page.getByRole('heading', { name: 'No stacks yet' }).waitFor();
      await page.unroute(/stacks\.list/);
      await page.goBack();
      await row.waitFor();
      // An organization without stacks does not make them new.
      expect(await page.getByText('Your first stack is here').count()).toBe(0);
      expect(await page.getByRole('navigation', { name: 'Views' }).getByRole('link').count()).toBe(1);
      await open();
      await dialog().getByRole('button', { name: 'Rename Failed on the web' }).click();
      await dialog().getByLabel('New name').fill('Broken');
      await dialog().getByRole('button', { name: 'Rename', exact: true }).click();
      await dialog().getByRole('button', { name: 'Delete Broken' }).click();
      await dialog().getByText('All members lose this view.').waitFor();
      await expectSound(page);
      await dialog().getByRole('button', { name: 'Delete the view' }).click();
      await dialog().getByRole('link', { name: 'Broken' }).waitFor({ state: 'detached' });
      await close();
      expect(await page.getByRole('navigation', { name: 'Views' }).count()).toBe(0);
      expect(complaints).toEqual([]);
    },
    scenarioTimeoutMs,
  );

  test(
    'a page tells the version, the license, and how programs reach the server',
    async () => {
      await page.goto(server.url);
      await page.getByRole('button', { name: 'ada', exact: true }).click();
      await page.getByRole('menuitem', { name: 'About Holdfast' }).click();
      await page.waitForURL(`${server.url}/~/about`);
      await page.getByText(version, { exact: true }).waitFor();
      await page.getByText(`pulumi login ${server.url}`).waitFor();
      expect((await fetch(`${server.url}/api/openapi.json`)).status).toBe(200);
      await expectSound(page);
      expect(complaints).toEqual([]);
    },
    scenarioTimeoutMs,
  );
});
