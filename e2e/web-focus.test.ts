import { beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { callApiOk } from '../testkit/api-call.ts';
import type { TestBrowser } from '../testkit/chromium.ts';
import type { OwnHoldfastServer } from '../testkit/holdfast-server.ts';
import { scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { until } from '../testkit/until.ts';
import { fileWebServer } from '../testkit/web-server.ts';
import { signIn, untilAsWide } from '../testkit/web-session.ts';

const organization = 'dev-org';

await suite('what the web UI tells keyboards and screen readers', { ownServer: true, tools: ['chromium'] }, () => {
  const web = fileWebServer();
  let server: OwnHoldfastServer;
  let browser: TestBrowser;
  let page: Page;

  async function call(path: string, body: object) {
    const headers = { accept: 'application/vnd.pulumi+8', 'content-type': 'application/json' };
    const response = await fetch(`${server.url}/api/${path}`, {
      ...{ method: 'POST', body: JSON.stringify(body) },
      headers: { ...headers, authorization: `token ${server.token}` },
    });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as { readonly ciphertext?: string };
  }

  beforeAll(async () => {
    ({ browser, server } = await web());
    const stack = `stacks/${organization}/web/prod`;
    await call(`stacks/${organization}/web`, { stackName: 'prod', tags: { team: 'red' } });
    for (const name of ['first', 'second']) await call(`orgs/${organization}/tokens`, { name, description: name });
    const plaintext = Buffer.from(JSON.stringify('hidden word')).toString('base64');
    const { ciphertext } = await call(`${stack}/encrypt`, { plaintext });
    const password = { '4dabf18193072939515e22adb298388d': '1b47061264138c4ac30d75fd1eb44270', ciphertext };
    const type = 'pulumi:pulumi:Stack';
    const resources = [{ urn: `urn:pulumi:prod::web::${type}::web-prod`, custom: false, type, outputs: { password } }];
    const state = { url: server.url, owner: organization, project: 'web', stack: 'prod' };
    const manifest = { time: '2026-01-01T00:00:00Z', magic: '', version: '' };
    const deployment = { manifest, secrets_providers: { type: 'service', state }, resources };
    await call(`${stack}/import`, { version: 3, deployment });
    ({ page } = await signIn(browser, server.url, 'ada'));
  }, scenarioTimeoutMs);

  beforeEach(async () => {
    await page.unrouteAll();
  });
  const open = (path: string) => page.goto(`${server.url}/${organization}${path}`);
  const press = (key: string) => page.keyboard.press(key);
  const row = (name: string) => page.getByRole('row').filter({ hasText: name });
  const button = (name: string) => page.getByRole('button', { name, exact: true });
  const untilFocused = (condition: string, what: string) =>
    until(
      () => page.evaluate(`((element) => ${condition})(document.activeElement)`) as Promise<boolean>,
      `${what} has the focus`,
    );

  test(
    'after a deletion, the focus is in the content',
    async () => {
      await open('/~/tokens');
      await row('second').waitFor();
      // A menu that was used before, far from the list.
      await page.getByRole('button', { name: /^Theme/ }).focus();
      await press('Enter');
      await page.getByRole('menu').waitFor();
      await press('Escape');
      await page.getByRole('menu').waitFor({ state: 'detached' });
      await button('Actions for first').focus();
      await press('Enter');
      await page.getByRole('menuitem', { name: 'Revoke' }).waitFor();
      await page.getByRole('menuitem', { name: 'Revoke' }).focus();
      await press('Enter');
      await page.getByRole('dialog').getByRole('button', { name: 'Revoke the token' }).focus();
      await press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      await untilFocused(`element.ariaLabel === 'Actions for first'`, 'the button of the menu');
      await press('Enter');
      await page.getByRole('menuitem', { name: 'Revoke' }).focus();
      await press('Enter');
      await page.getByRole('dialog').getByRole('button', { name: 'Revoke the token' }).focus();
      await press('Enter');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      await row('first').waitFor({ state: 'detached' });
      await untilFocused(`element.closest('main') !== null`, 'the content');
    },
    scenarioTimeoutMs,
  );

  test(
    'a dialog that follows another one returns the focus to what opened the first',
    async () => {
      await open('/~/tokens');
      await button('Create a token').focus();
      await press('Enter');
      const dialog = page.getByRole('dialog');
      await dialog.getByRole('textbox', { name: /^Name/ }).fill('third');
      await dialog.getByRole('button', { name: 'Create the token', disabled: false }).waitFor();
      await press('Enter');
      await dialog.getByRole('button', { name: 'I have stored it' }).focus();
      await press('Enter');
      await dialog.waitFor({ state: 'detached' });
      await untilFocused(`element.textContent === 'Create a token'`, 'the button that opened the first');
    },
    scenarioTimeoutMs,
  );

  test(
    'a value that is revealed has the focus, and its button once it is hidden again',
    async () => {
      await open('/web/prod');
      await button('Reveal password').focus();
      await press('Enter');
      await page.getByText('hidden word').waitFor();
      await untilFocused(`element.textContent === 'hidden word'`, 'the value');
      await button('Hide password').focus();
      await press('Enter');
      await page.getByText('hidden word').waitFor({ state: 'detached' });
      await untilFocused(`element.ariaLabel === 'Reveal password'`, 'the button');
    },
    scenarioTimeoutMs,
  );

  test(
    'the form of a tag returns the focus, and is not cancelled once it is sent',
    async () => {
      await open('/web/prod');
      await button('Add a tag').focus();
      await press('Enter');
      await page.getByLabel('Name of the tag').fill('owner');
      await button('Cancel').focus();
      await press('Enter');
      await untilFocused(`element.textContent === 'Add a tag'`, 'the button that opens the form');
      await press('Enter');
      await page.getByLabel('Name of the tag').fill('owner');
      const { promise: isSeen, resolve: goOn } = Promise.withResolvers<void>();
      await page.route('**/trpc/stacks.setTag*', async (route) => {
        await isSeen;
        await route.continue();
      });
      await page.getByLabel('Name of the tag').press('Enter');
      await until(async () => !(await button('Cancel').isEnabled()), 'the form is being sent');
      goOn();
      await button('Remove the tag owner').waitFor();
      await untilFocused(`element.textContent === 'Add a tag'`, 'the button that opens the form');
      await button('Remove the tag owner').focus();
      await press('Enter');
      await button('Remove the tag owner').waitFor({ state: 'detached' });
      await untilFocused(`element.textContent === 'Add a tag'`, 'the button that opens the form');
    },
    scenarioTimeoutMs,
  );

  test(
    'the form of a tag ends with its answer, before the page is read again',
    async () => {
      await open('/web/prod');
      await button('Add a tag').click();
      const name = page.getByLabel('Name of the tag');
      await name.fill('tier');
      const { promise: isOver, resolve: goOn } = Promise.withResolvers<void>();
      const { promise: isRead, resolve: noteRead } = Promise.withResolvers<void>();
      await page.route('**/trpc/stacks.*', async (route) => {
        if (!route.request().url().includes('stacks.setTag')) {
          noteRead();
          await isOver;
        }
        await route.continue();
      });
      await name.press('Enter');
      await isRead;
      await name.waitFor({ state: 'detached' });
      goOn();
      await button('Remove the tag tier').waitFor();
    },
    scenarioTimeoutMs,
  );

  test(
    'a tag whose removal is refused keeps the focus, and one that is removed leaves it where it is',
    async () => {
      const setZone = (value: string) =>
        callApiOk(server, 'POST', `stacks/${organization}/web/prod/tags`, { name: 'zone', value });
      await setZone('north');
      await open('/web/prod');
      const remove = button('Remove the tag zone');
      const other = button('Remove the tag team');
      await remove.waitFor();
      const holdReads = async (): Promise<() => void> => {
        const { promise: isOver, resolve } = Promise.withResolvers<void>();
        await page.route('**/trpc/stacks.get*', async (route) => {
          await isOver;
          await route.continue();
        });
        return resolve;
      };
      const showChange = await holdReads();
      // Another user changes it.
      await setZone('south');
      await remove.focus();
      await press('Enter');
      showChange();
      await page.getByRole('alert').waitFor();
      await page.getByTitle('south').waitFor();
      await untilFocused(`element.ariaLabel === 'Remove the tag zone'`, 'the button of the tag');
      const showRemoval = await holdReads();
      await press('Enter');
      await page.getByRole('alert').waitFor({ state: 'detached' });
      await until(() => other.isEnabled(), 'the tag is removed');
      await other.focus();
      showRemoval();
      await remove.waitFor({ state: 'detached' });
      await untilFocused(`element.ariaLabel === 'Remove the tag team'`, 'the button of the other tag');
    },
    scenarioTimeoutMs,
  );

  test(
    'each page that is gone to is announced, and is the only one that is current',
    async () => {
      await open('/web/prod');
      await page.getByRole('heading', { name: 'web/prod' }).waitFor();
      const crumbs = page.getByRole('navigation', { name: 'Where you are' });
      const current = () => crumbs.locator('[aria-current=page]').allTextContents();
      expect(await current()).toEqual(['prod']);
      const announced = (title: string) => page.getByRole('status').filter({ hasText: `${title} - Holdfast` });
      await page.getByRole('link', { name: 'Organization', exact: true }).press('Enter');
      await announced(`Members of ${organization}`).waitFor({ state: 'attached' });
      expect(await current()).toEqual(['Members']);
      await page.evaluate(`history.pushState(null, '', '/${organization}/~/nowhere')`);
      await page.evaluate(`dispatchEvent(new PopStateEvent('popstate'))`);
      await announced('Page not found').waitFor({ state: 'attached' });
      await open('/web/prod/updates/1');
      await crumbs.getByText('Update 1').waitFor();
      expect(await current()).toEqual(['Update 1']);
    },
    scenarioTimeoutMs,
  );

  test(
    'a small problem on a page does not hide that the page may be out of date',
    async () => {
      await open('/web/prod');
      await button('Reveal password').waitFor();
      await page.evaluate(`document.querySelector('main').insertAdjacentHTML('beforeend', '<p role="alert">No</p>')`);
      await page.route('**/healthz', (route) => route.abort());
      await page.route('**/trpc/**', (route) => route.abort());
      await page.evaluate("dispatchEvent(new Event('visibilitychange'))");
      await page.getByRole('status').filter({ hasText: 'The server does not answer' }).waitFor();
    },
    scenarioTimeoutMs,
  );

  test(
    'a key of the page leaves the focus in what is open above it',
    async () => {
      await open('');
      await row('web/prod').waitFor();
      await press('?');
      await untilFocused(`element.closest('[role=dialog]') !== null`, 'the list of keys');
      await press('/');
      expect(await page.evaluate(`document.activeElement.closest('[role=dialog]') !== null`)).toBe(true);
      await press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
    },
    scenarioTimeoutMs,
  );

  test(
    'a narrow window shows all of a table',
    async () => {
      await call(`orgs/${organization}/update-rules`, { kind: 'freeze', settings: {}, note: 'Sale' });
      await page.setViewportSize({ width: 640, height: 480 });
      await open('/~/rules');
      await page.getByText('Sale').waitFor();
      expect(await page.locator('td[data-name="Set by"]').first().isVisible()).toBe(true);
      await untilAsWide(page, 640);
      await page.setViewportSize({ width: 1280, height: 720 });
    },
    scenarioTimeoutMs,
  );

  test(
    'keys that belong to an input method do nothing else',
    async () => {
      await open('');
      await row('web/prod').waitFor();
      const compose = (key: string) =>
        page.evaluate(
          `document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: '${key}', bubbles: true, cancelable: true, isComposing: true }))`,
        ) as Promise<boolean>;
      await press('/');
      await untilFocused(`element.type === 'search'`, 'the filter');
      await page.keyboard.type('web');
      // Nothing has prevented what the browser does.
      for (const key of ['ArrowDown', 'Enter', 'Escape']) expect([key, await compose(key)]).toEqual([key, true]);
      await press('Control+k');
      const field = page.getByRole('combobox', { name: 'Stack, page or command' });
      await field.and(page.locator(':focus')).waitFor();
      for (const key of ['ArrowDown', 'Enter']) expect([key, await compose(key)]).toEqual([key, true]);
      expect(await field.isVisible()).toBe(true);
    },
    scenarioTimeoutMs,
  );
});
