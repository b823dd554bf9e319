import { beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { callApi } from '../testkit/api-call.ts';
import type { OwnHoldfastServer } from '../testkit/holdfast-server.ts';
import { scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { until } from '../testkit/until.ts';
import { expectSound, fileWebServer } from '../testkit/web-server.ts';
import { filePage, runCommand } from '../testkit/web-session.ts';

const organization = 'dev-org';

await suite('what needs attention, and what happened', { ownServer: true, tools: ['chromium'] }, () => {
  const web = fileWebServer({ reviewer: true, viewers: ['vera'] });
  const { complaints, dialog, openPage, row, signInAs } = filePage();
  let server: OwnHoldfastServer;
  let page: Page;

  /** Posts a body, or deletes without one. */
  async function call(at: string, body: object | null, auth = `token ${server.token}`) {
    const headers = { authorization: auth, accept: 'application/vnd.pulumi+9', 'content-type': 'application/json' };
    const request = body === null ? { method: 'DELETE' } : { method: 'POST', body: JSON.stringify(body) };
    const response = await fetch(`${server.url}/api/${at}`, { headers, ...request });
    if (!response.ok) throw new Error(`${at}: ${response.status} ${await response.text()}`);
    const text = await response.text();
    return (text === '' ? {} : JSON.parse(text)) as { id: string; updateID: string; token: string };
  }

  const read = async (at: string): Promise<string> => (await callApi(server, 'GET', at)).text();

  /** Runs an update of a stack to its end. */
  async function run(stack: string, status: string, message = ''): Promise<void> {
    const at = `stacks/${organization}/${stack}/update`;
    const { updateID } = await call(at, { config: {}, metadata: { message, environment: {} } });
    const { token } = await call(`${at}/${updateID}`, {});
    await call(`${at}/${updateID}/complete`, { status }, `update-token ${token}`).catch(() => {});
  }

  /** A tab that nobody sees, until it says that it is seen, and the streams that it has opened. */
  async function hiddenTab(): Promise<{ tab: Page; streams: string[] }> {
    const tab = await page.context().newPage();
    const streams: string[] = [];
    tab.on('request', (request) => {
      if (request.resourceType() === 'eventsource') streams.push(request.url());
    });
    await tab.addInitScript(
      "Object.defineProperty(document, 'visibilityState', { get: () => window.seen ?? 'hidden' })",
    );
    return { tab, streams };
  }

  beforeAll(async () => {
    ({ server } = await web());
    const { browser } = await web();
    page = await openPage(browser, server.url);
  }, scenarioTimeoutMs);

  test(
    'the page says that all is well, and has a row with a link for each trouble',
    async () => {
      await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Needs attention' }).click();
      await page.getByRole('heading', { name: 'All is well' }).waitFor();
      await expectSound(page);
      // It says so only of all stacks.
      const found = /trpc\/[^?]*stacks\.attention/;
      await page.route(found, async (route) => {
        const response = await route.fetch();
        await route.fulfill({
          response,
          body: (await response.text()).replace('"isPartial":false', '"isPartial":true'),
        });
      });
      await page.reload();
      await page.getByRole('heading', { name: 'Nothing found' }).waitFor();
      expect(await page.getByText('No stack is failed').count()).toBe(0);
      await page.unroute(found);

      for (const stackName of ['prod', 'dev']) await call(`stacks/${organization}/web`, { stackName });
      await run('web/prod', 'failed', 'The pool moves');
      const { id } = await call(`orgs/${organization}/update-rules`, {
        kind: 'freeze',
        note: 'the fair',
        settings: {},
      });
      await page.reload();
      await row('Update 1 failed').filter({ hasText: 'The pool moves' }).filter({ hasText: 'ada' }).waitFor();
      await row('the fair').filter({ hasText: 'Freezes 2 stacks' }).waitFor();
      await expectSound(page);
      await page.getByRole('link', { name: 'Update 1 failed' }).click();
      await page.waitForURL(`**/${organization}/web/prod/updates/1`);
      await page.goBack();
      await row('the fair').getByRole('link').click();
      await page.waitForURL(`**/${organization}?status=frozen`);
      await row('web/dev').waitFor();

      // Of one organization.
      await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Needs attention' }).click();
      await page.waitForURL(`**/${organization}/~/attention`);
      await page.getByRole('link', { name: 'web/prod' }).waitFor();
      await call(`orgs/${organization}/update-rules/${id}`, null);
      expect(complaints).toEqual([]);
    },
    scenarioTimeoutMs,
  );

  test(
    'the activity shows what happens as it happens, marks what is new, and has filters',
    async () => {
      await page.goto(`${server.url}/${organization}`);
      await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Activity' }).click();
      const failed = row('web/prod').filter({ hasText: 'Update 1' }).filter({ hasText: 'Failed' });
      await failed.waitFor();
      expect(await page.getByText('New', { exact: true }).count()).toBe(0);
      await expectSound(page);

      await run('web/dev', 'succeeded');
      const added = row('web/dev').filter({ hasText: 'Update 1' }).filter({ hasText: 'Succeeded' });
      await added.waitFor();
      await page.reload();
      await added.waitFor();
      expect(await page.getByText('New', { exact: true }).count()).toBe(0);
      await page.goto('about:blank');
      await run('web/dev', 'succeeded');
      await page.goto(`${server.url}/${organization}/~/activity`);
      await row('Update 2').filter({ hasText: 'New' }).waitFor();
      expect(await page.getByText('New', { exact: true }).count()).toBe(1);
      await expectSound(page);

      await page.getByLabel('Kind').selectOption('freezes');
      await row('Set a freeze')
        .filter({ hasText: `organization ${organization}` })
        .waitFor();
      await failed.waitFor({ state: 'detached' });
      await page.getByLabel('Kind').selectOption('updates');
      await page.getByLabel('Project or stack').fill('web/prod');
      await failed.waitFor();
      await added.waitFor({ state: 'detached' });
      await failed.getByRole('link', { name: 'Update 1' }).click();
      await page.waitForURL(`**/${organization}/web/prod/updates/1`);
      expect(complaints).toEqual([]);
    },
    scenarioTimeoutMs,
  );

  test(
    'the palette thaws a stack, cancels the update on view, approves, and copies the name, for people who may',
    async () => {
      const { id } = await call(`orgs/${organization}/update-rules`, {
        ...{ kind: 'freeze', project: 'web', stack: 'dev', settings: {} },
      });
      await page.goto(`${server.url}/${organization}/web/dev`);
      await page.getByRole('button', { name: 'Thaw' }).waitFor();
      await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
      await runCommand(page, 'copy the name', 'Copy the name of this stack');
      await until(async () => {
        const copied = await page.evaluate('navigator.clipboard.readText()');
        return copied === `${organization}/web/dev`;
      }, 'the name is copied');
      await runCommand(page, 'thaw', 'Thaw this stack');
      await dialog().getByRole('button', { name: 'Thaw' }).click();
      await page.getByRole('button', { name: 'Thaw' }).waitFor({ state: 'detached' });
      expect((await read(`orgs/${organization}/update-rules`)).includes(id)).toBe(false);

      const at = `stacks/${organization}/web/dev/update`;
      const { updateID } = await call(at, { config: {} });
      await call(`${at}/${updateID}`, {});
      await page.goto(`${server.url}/${organization}/web/dev/previews/${updateID}`);
      await page.getByRole('button', { name: 'Cancel', exact: true }).waitFor();
      await runCommand(page, 'cancel this', 'Cancel this update');
      await dialog().getByRole('button', { name: 'Cancel the update' }).click();
      await page.getByText('Cancelled', { exact: true }).waitFor();

      await call(`orgs/${organization}/update-rules`, { kind: 'change-limit', settings: { changes: 0 } });
      await call(
        `stacks/${organization}/web/dev/approvals`,
        { commit: 'd'.repeat(40), reason: 'The old pool goes' },
        `token ${server.reviewerToken}`,
      );
      await page.goto(`${server.url}/${organization}/web/dev`);
      await page.getByText('The old pool goes', { exact: true }).waitFor();
      await runCommand(page, 'approve', 'Approve the requested run');
      await dialog().getByLabel('Reason').fill('Seen');
      await dialog().getByRole('button', { name: 'Approve', exact: true }).click();
      await page.getByText('The old pool goes', { exact: true }).waitFor({ state: 'detached' });

      await signInAs('vera');
      await page.goto(`${server.url}/${organization}/web/dev`);
      await page.getByRole('heading', { name: 'web/dev' }).waitFor();
      await page.getByRole('heading', { name: 'Outputs' }).waitFor();
      await page.keyboard.press('Control+k');
      await page.getByRole('option', { name: 'Copy the name of this stack' }).waitFor();
      const forAdmins = page.getByRole('option', { name: /freeze|thaw|cancel|approve/i });
      expect(await forAdmins.allTextContents()).toEqual([]);
      await page.keyboard.press('Escape');
      await dialog().waitFor({ state: 'detached' });

      // Help for the keyboard, but not while somebody writes.
      await page.keyboard.press('?');
      await dialog().getByText('Show the keyboard shortcuts').waitFor();
      await expectSound(page);
      await page.keyboard.press('Escape');
      await dialog().waitFor({ state: 'detached' });
      await page.goto(`${server.url}/${organization}`);
      await page.getByLabel('Find a project or stack').fill('');
      await page.keyboard.type('what?');
      await page.waitForURL(/text=what/);
      expect(await dialog().count()).toBe(0);
      expect(complaints).toEqual([]);
    },
    scenarioTimeoutMs,
  );

  test(
    'the browser asks for permission on the click only, and notifies of the end of what is watched',
    async () => {
      await signInAs('ada');
      // A browser without a screen shows no notifications.
      await page.addInitScript(`
        window.shown = [];
        window.asked = 0;
        window.Notification = class {
          static permission = 'default';
          static requestPermission() { window.asked += 1; return Promise.resolve(window.answer ?? 'granted'); }
          constructor(title, { body, tag }) { window.shown.push(title + ' | ' + body); }
          close() {}
        }`);
      const shown = async () => (await page.evaluate('window.shown')) as string[];
      const at = `stacks/${organization}/web/dev/update`;
      await page.goto(`${server.url}/${organization}/web/dev`);
      const watchStack = page.getByRole('button', { name: 'Notify me when an update ends' });
      await watchStack.waitFor();
      expect(await page.evaluate('window.asked')).toBe(0);
      await page.evaluate(`window.answer = 'denied'`);
      await watchStack.click();
      await page.getByText('The browser blocks notifications of this site.').waitFor();
      await page.evaluate(`window.answer = 'granted'`);
      const here = 'web/dev | You will be notified here.';
      await watchStack.click();
      await page.getByRole('button', { name: 'Stop watching' }).waitFor();
      // Nobody else who uses this browser.
      const stored = JSON.parse(String(await page.evaluate(`localStorage.getItem('holdfast.watched')`))) as object[];
      expect(stored).toMatchObject([{ login: 'ada', stack: 'dev' }]);
      await until(
        async () => /"endedAt":"/.test(String(await page.evaluate(`localStorage.getItem('holdfast.watched')`))),
        'the last end is known',
      );
      expect(await shown()).toEqual([here]);
      await expectSound(page);
      // On any page.
      await page.goto(`${server.url}/${organization}/~/members`);
      await page.getByRole('heading', { name: 'Members' }).first().waitFor();
      await run('web/dev', 'failed', 'The pool moves');
      await until(async () => (await shown()).length > 0, 'the notification is shown');
      expect(await shown()).toEqual([expect.stringMatching(/^web\/dev: Update \d+ failed \| The pool moves$/)]);
      // Of the tabs that nobody sees, only the one that notifies has a stream. Another one would begin 50 ms after the data.
      const whenItWouldBegin = 'new Promise((resolve) => setTimeout(resolve, 1_000))';
      const { streams, tab: hidden } = await hiddenTab();
      await hidden.goto(`${server.url}/${organization}/web/dev`);
      await hidden.getByRole('button', { name: 'Stop watching' }).waitFor();
      await hidden.getByRole('heading', { name: 'Outputs' }).waitFor();
      await hidden.evaluate(whenItWouldBegin);
      expect(streams).toEqual([]);
      await page.goto('about:blank');
      await until(async () => streams.length === 1, 'the other tab notifies');
      await page.goto(`${server.url}/${organization}/web/dev`);
      await hidden.close();
      await page.getByRole('button', { name: 'Stop watching' }).click();
      await watchStack.waitFor();
      const { streams: shownStreams, tab: seen } = await hiddenTab();
      await seen.goto(`${server.url}/${organization}/web/dev`);
      await seen.getByRole('heading', { name: 'Outputs' }).waitFor();
      await seen.evaluate(whenItWouldBegin);
      expect(shownStreams).toEqual([]);
      await seen.evaluate("window.seen = 'visible'; document.dispatchEvent(new Event('visibilitychange'))");
      await until(async () => shownStreams.length === 1, 'the tab that is shown has a stream');
      await seen.close();

      // One update, once.
      const { updateID } = await call(at, { config: {} });
      const { token } = await call(`${at}/${updateID}`, {});
      await page.goto(`${server.url}/${organization}/web/dev/previews/${updateID}`);
      await page.getByRole('button', { name: 'Notify me when it ends' }).click();
      await page.getByRole('button', { name: 'Stop watching' }).waitFor();
      await call(`${at}/${updateID}/complete`, { status: 'succeeded' }, `update-token ${token}`);
      await until(async () => (await shown()).length > 1, 'the notification is shown');
      expect(await shown()).toEqual([here, expect.stringMatching(/^web\/dev: Update \d+ succeeded \| $/)]);
      expect(await page.evaluate(`localStorage.getItem('holdfast.watched')`)).toBe('[]');
      expect(complaints).toEqual([]);
    },
    scenarioTimeoutMs,
  );
});
