import { beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { webPassword } from '../testkit/admin-command.ts';
import type { TestBrowser } from '../testkit/chromium.ts';
import type { OwnHoldfastServer } from '../testkit/holdfast-server.ts';
import { scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { tuned } from '../testkit/tuned.ts';
import { until } from '../testkit/until.ts';
import { fileWebServer } from '../testkit/web-server.ts';
import { runCommand } from '../testkit/web-session.ts';

const organization = 'dev-org';
/** As many stops as a page may have before what is looked for. */
const maxStops = 60;

/** What has the focus: its name as readers have it, and whether it can be seen that it has. */
interface Focused {
  readonly name: string;
  readonly isInDialog: boolean;
  readonly flaw: string | null;
}

const nameOf = `(element) => {
  const labels = [...(element.labels ?? [])].map((label) => label.textContent).join(' ');
  return (element.getAttribute('aria-label') || labels || element.textContent || '').replace(/\\s+/g, ' ').trim();
}`;

/** The names of all that may have the focus. */
const stops = `[...document.querySelectorAll('a[href], button:enabled, input, select, textarea, summary, [tabindex="0"]')].map(${nameOf})`;

const focused = `(() => {
  const element = document.activeElement;
  const name = (${nameOf})(element);
  const isInDialog = element.closest('[role=dialog]') !== null;
  if (element === document.body) return { name, isInDialog, flaw: 'nothing has the focus' };
  // A link that fills its row is marked by what covers the row.
  const styles = [getComputedStyle(element), getComputedStyle(element, '::after')];
  const box = element.getBoundingClientRect();
  const isOut = box.bottom <= 0 || box.right <= 0 || box.top >= innerHeight || box.left >= innerWidth;
  const isMarked = styles.some(({ boxShadow, outlineStyle, outlineWidth }) =>
    (outlineStyle !== 'none' && outlineWidth !== '0px') || boxShadow !== 'none');
  const flaw = !element.matches(':focus-visible') ? 'is not :focus-visible' : isOut ? 'is out of sight' : isMarked ? null : 'looks as without it';
  return { name, isInDialog, flaw };
})()`;

await suite('the web UI without a mouse', { ownServer: true, tools: ['chromium'] }, () => {
  // The update that is left running must not end by itself.
  const web = fileWebServer({ settings: tuned({ leaseSeconds: 3600 }) });
  let server: OwnHoldfastServer;
  let browser: TestBrowser;
  let page: Page;

  async function call(path: string, body: object, auth = `token ${server.token}`) {
    const headers = { authorization: auth, accept: 'application/vnd.pulumi+9', 'content-type': 'application/json' };
    const response = await fetch(`${server.url}/api/stacks/${organization}/${path}`, {
      ...{ method: 'POST', headers, body: JSON.stringify(body) },
    });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as { updateID: string };
  }
  async function importState(text: string): Promise<void> {
    const type = 'pulumi:index:Stash';
    const urn = `urn:pulumi:prod::web::${type}::note`;
    const resources = [{ urn, custom: true, type, inputs: { input: text }, outputs: { output: text } }];
    const manifest = { time: '2026-01-01T00:00:00Z', magic: '', version: '' };
    await call('web/prod/import', { version: 3, deployment: { manifest, resources } });
  }

  beforeAll(async () => {
    ({ browser, server } = await web());
    for (const stackName of ['dev', 'prod']) await call('web', { stackName });
    await call('api', { stackName: 'prod' });
    for (const text of ['first', 'second']) await importState(text);
    const { updateID } = await call('web/prod/update', { config: {} });
    await call(`web/prod/update/${updateID}`, {});
    page = await browser.context.newPage();
  }, scenarioTimeoutMs);
  const press = (key: string) => page.keyboard.press(key);
  const look = async () => (await page.evaluate(focused)) as Focused;
  const hasName = (name: string | RegExp, found: string) =>
    typeof name === 'string' ? found === name : name.test(found);

  /** Goes on by a key until something of this name has the focus, once it is on the page. Each stop must be seen. */
  async function tabTo(name: string | RegExp, key = 'Tab'): Promise<void> {
    await until(
      async () => ((await page.evaluate(stops)) as string[]).some((found) => hasName(name, found)),
      `${name} is on the page`,
    );
    const passed: string[] = [];
    for (let stop = 0; stop < maxStops; stop += 1) {
      await press(key);
      const { flaw, name: found } = await look();
      passed.push(found);
      // From the end of the page, the next stop is the browser itself.
      if (flaw !== null && flaw !== 'nothing has the focus') throw new Error(`${found}: ${flaw}`);
      if (hasName(name, found)) return;
    }
    throw new Error(`${name} is not reached: ${passed.join(' | ')}`);
  }
  const untilFocused = (name: string | RegExp) =>
    until(async () => {
      const { flaw, name: found } = await look();
      return flaw === null && hasName(name, found);
    }, `${name} has the focus`);
  /** A dialog takes the focus some time after it is shown. */
  const untilInDialog = () => until(async () => (await look()).isInDialog, 'the dialog has the focus');

  test(
    'from sign-in to a restored version, the focus is seen and returns from dialogs',
    async () => {
      await page.goto(`${server.url}/${organization}`);
      await page.getByRole('heading', { name: 'Sign in' }).waitFor();
      if ((await look()).name !== 'Login') await tabTo('Login');
      await page.keyboard.type('ada');
      await tabTo('Password');
      await page.keyboard.type(webPassword);
      await press('Enter');
      await page.getByRole('row').filter({ hasText: 'web/prod' }).waitFor();

      // The first stop leads past the navigation.
      await page.reload();
      await page.getByRole('row').filter({ hasText: 'web/prod' }).waitFor();
      await press('Tab');
      expect(await look()).toMatchObject({ name: 'Skip to the content', flaw: null });
      await press('Enter');
      await press('Tab');
      expect(await page.evaluate(`document.querySelector('main').contains(document.activeElement)`)).toBe(true);

      // That is no way out of the page, whatever is open there.
      const asked: string[] = [];
      page.on('dialog', (leave) => {
        asked.push(leave.message());
        void leave.dismiss();
      });
      await page.getByRole('link', { name: 'web/prod', exact: true }).first().focus();
      await press('Enter');
      await page.getByRole('button', { name: 'Add a tag', exact: true }).click();
      await page.getByLabel('Name of the tag').fill('owner');
      const before = (await page.evaluate('[history.length, location.href]')) as unknown[];
      await page.getByRole('link', { name: 'Skip to the content' }).focus();
      await press('Enter');
      await page.locator('main:focus').waitFor();
      expect(await page.evaluate('[history.length, location.href]')).toEqual(before);
      expect(asked).toEqual([]);
      await page.getByLabel('Name of the tag').fill('');
      // A dialog in which nothing is entered does not ask either.
      await page.getByRole('button', { name: 'Freeze', exact: true }).click();
      await untilInDialog();
      await page.goBack();
      await page.getByRole('row').filter({ hasText: 'api/prod' }).waitFor();
      expect(asked).toEqual([]);

      // Filters.
      await press('/');
      await untilFocused('Find a project or stack');
      await page.keyboard.type('web/');
      await page.getByRole('row').filter({ hasText: 'api/prod' }).waitFor({ state: 'detached' });

      // The palette, and back to where the focus was.
      await press('Control+k');
      await page.getByRole('combobox', { name: 'Stack, page or command' }).and(page.locator(':focus')).waitFor();
      await press('Escape');
      await untilFocused('Find a project or stack');
      await runCommand(page, 'web/prod', `${organization}/web/prod`);
      await page.waitForURL(`${server.url}/${organization}/web/prod`);
      await page.getByRole('heading', { name: 'web/prod' }).waitFor();

      // The update that runs, which is cancelled.
      await tabTo(/^Updates/);
      await press('Enter');
      await tabTo(/^Update 3/);
      await press('Enter');
      await page.getByRole('heading', { name: /^Update 3/ }).waitFor();
      await page.getByRole('button', { name: 'Cancel', exact: true }).waitFor();
      await tabTo('Cancel');
      await press('Enter');
      await page.getByRole('dialog').waitFor();
      await untilInDialog();
      // Tab stays in it.
      for (let stop = 0; stop < 5; stop += 1) {
        await press('Tab');
        await untilInDialog();
      }
      await press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      await untilFocused('Cancel');
      await press('Enter');
      await untilInDialog();
      await tabTo('Cancel the update');
      await press('Enter');
      await page.getByText('Cancelled', { exact: true }).first().waitFor();
      await page.getByRole('dialog').waitFor({ state: 'detached' });

      // Differences of versions, and one that is restored after its stack's name is typed.
      await page.goBack();
      await page.getByRole('heading', { name: 'web/prod' }).waitFor();
      await tabTo(/^Versions/);
      await press('Enter');
      await page.getByLabel('To version').waitFor();
      await tabTo(/^2\D/);
      await press('Enter');
      const secondValue = page
        .getByRole('region', { name: 'Differences of versions 1 and 2' })
        .getByText(/second/)
        .first();
      await secondValue.waitFor();
      await tabTo(/note/);
      await press('Enter');
      await secondValue.waitFor({ state: 'hidden' });
      await press('Enter');
      await secondValue.waitFor();
      await tabTo(/^1\D/, 'Shift+Tab');
      await press('Enter');
      await page.getByRole('region', { name: 'Differences of versions 0 and 1' }).waitFor();
      await tabTo('Restore version 1');
      await press('Enter');
      await page.getByRole('dialog').waitFor();
      await untilFocused('Type prod to confirm');
      await press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      await untilFocused('Restore version 1');
      await press('Enter');
      await untilFocused('Type prod to confirm');
      await page.keyboard.type('prod');
      await tabTo('Restore version 1');
      await press('Enter');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      await page.getByRole('button', { name: /Restored version 1/ }).waitFor();

      // The panel of a resource, and back to its row.
      await tabTo(/^Resources/, 'Shift+Tab');
      await press('Enter');
      await tabTo(/^note./);
      await press('Enter');
      await untilFocused('note');
      await tabTo('Close');
      await press('Enter');
      await untilFocused(/^note./);
    },
    scenarioTimeoutMs,
  );
});
