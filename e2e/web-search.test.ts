import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { callApiOk } from '../testkit/api-call.ts';
import { Scenario, unattended } from '../testkit/scenario.ts';
import { reference, secret } from '../testkit/stash-program.ts';
import { scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { until } from '../testkit/until.ts';
import { fileWebServer } from '../testkit/web-server.ts';
import { findBarriers, signIn, untilAsWide } from '../testkit/web-session.ts';

const waitMs = 120_000;
const hidden = 'the-hidden-value';

await suite('search, references and secrets in the web UI', {
  ownServer: true,
  tools: ['pulumi-3.276', 'chromium'],
}, () => {
  const web = fileWebServer({ viewers: ['vera'] });
  let producer: Scenario;
  let consumer: Scenario;

  const api = async (method: string, path: string, body?: object) => {
    return callApiOk((await web()).server, method, path, body);
  };

  beforeAll(async () => {
    const { server: holdfast } = await web();
    producer = await Scenario.create(holdfast);
    consumer = await Scenario.create(holdfast);
    const stash = (input: unknown) => ({ type: 'pulumi:index:Stash', properties: { input: input as string } });
    await producer.workspace.writeProgram({
      name: producer.project,
      runtime: 'yaml',
      resources: { 'orders-db': stash(secret(hidden)), 'orders-queue': stash('plain'), cache: stash('plain') },
      outputs: { url: 'http://x', password: reference('orders-db', 'output') },
    });
    await producer.workspace.runOk(['up', ...unattended]);
    const name = producer.stackName('dev');
    await consumer.workspace.writeProgram({
      name: consumer.project,
      runtime: 'yaml',
      resources: { ref: { type: 'pulumi:pulumi:StackReference', properties: { name } } },
      outputs: { url: `\${ref.outputs["url"]}` },
    });
    await consumer.workspace.runOk(['up', ...unattended]);
    await until(
      async () => {
        const path = `orgs/${holdfast.organization}/search/resources?query=${encodeURIComponent('type:pulumi:pulumi:*')}`;
        // Two roots and a reference.
        return (await api('GET', path)).total === 3;
      },
      'both states are indexed',
      { timeoutMs: waitMs },
    );
  }, 600_000);

  afterAll(async () => {
    await producer?.[Symbol.asyncDispose]();
    await consumer?.[Symbol.asyncDispose]();
  });

  test(
    'resources are found, narrowed and shared by their URL',
    async () => {
      const { browser, server } = await web();
      const { organization, url } = server;
      const { page } = await signIn(browser, url, 'ada');
      await page.setViewportSize({ width: 1440, height: 900 });
      await page.goto(url);
      await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Search' }).click();
      await page.getByRole('button', { name: /tag:env=prod/ }).waitFor();
      expect(await findBarriers(page)).toEqual([]);
      await page.getByLabel('Search resources').fill('orders');
      const table = page.getByRole('table', { name: 'Resources' });
      await table.getByRole('link', { name: 'orders-db' }).waitFor();
      await page.getByText('exact', { exact: true }).waitFor();
      const shown = async () => (await table.getByRole('link', { name: /orders|cache/ }).allTextContents()).sort();
      expect(await shown()).toEqual(['orders-db', 'orders-queue']);
      await page.getByLabel('Search resources').fill('orders -name:*queue');
      await table.getByRole('link', { name: 'orders-queue' }).waitFor({ state: 'detached' });
      await page.waitForURL((to) => to.searchParams.get('q') === 'orders -name:*queue');
      expect(await findBarriers(page)).toEqual([]);

      const other = await browser.context.newPage();
      await other.goto(page.url());
      await other.getByRole('link', { name: 'orders-db' }).click();
      await other.waitForURL((to) => to.pathname === `/${organization}/${producer.project}/dev`);
      await other.close();

      await page.getByLabel('Search resources').fill('type:pulumi:index:Stash naem:db');
      await page.locator('mark', { hasText: 'naem:db' }).waitFor();
      expect(await findBarriers(page)).toEqual([]);
      await page.goto(`${url}/${organization}/~/search?view=providers`);
      await page
        .getByRole('table', { name: 'Versions of providers' })
        .or(page.getByText('No providers yet'))
        .first()
        .waitFor();
      expect(await findBarriers(page)).toEqual([]);
      await page.setViewportSize({ width: 390, height: 844 });
      await page.goto(`${url}/${organization}/~/search?q=orders`);
      await table.getByRole('link', { name: 'orders-db' }).waitFor();
      await untilAsWide(page, 390);
      await page.close();
    },
    scenarioTimeoutMs,
  );

  test(
    'a secret is shown after a click, which is recorded, and gone after leaving',
    async () => {
      const { browser, server } = await web();
      const { organization, url } = server;
      const path = `${url}/${organization}/${producer.project}/dev`;
      const { page } = await signIn(browser, url, 'ada');
      await page.setViewportSize({ width: 1440, height: 900 });
      await page.goto(path);
      const reveal = page.getByRole('button', { name: 'Reveal password' });
      await reveal.waitFor();
      expect(await page.content()).not.toContain(hidden);
      await reveal.click();
      await page.getByText(hidden).waitFor();
      expect(await findBarriers(page)).toEqual([]);
      await page.getByRole('link', { name: 'Versions', exact: true }).click();
      await page.getByText(hidden).waitFor({ state: 'detached' });
      await page.getByRole('link', { name: 'Overview' }).click();
      await reveal.waitFor();
      expect(await page.content()).not.toContain(hidden);
      const log = await api('GET', `orgs/${organization}/auditlogs?eventType=secret.show`);
      expect(JSON.stringify(log)).toContain('outputs.password');
      expect(JSON.stringify(log)).not.toContain(hidden);
      await page.close();

      // Without the permission there is no button.
      await api('PATCH', `orgs/${organization}/access-policy`, { decryptByRole: false });
      const { page: viewer } = await signIn(browser, url, 'vera');
      await viewer.goto(path);
      await viewer.getByText('http://x').waitFor();
      await viewer.getByText('secret', { exact: true }).waitFor();
      expect(await viewer.getByRole('button', { name: /^Reveal/ }).count()).toBe(0);
      await viewer.close();
    },
    scenarioTimeoutMs,
  );

  test(
    'references are shown as a graph and as a list, and on the stacks',
    async () => {
      const { browser, server } = await web();
      const { organization, url } = server;
      const { page } = await signIn(browser, url, 'ada');
      await page.setViewportSize({ width: 1440, height: 900 });
      await page.goto(`${url}/${organization}/~/references`);
      const graph = page.getByRole('figure', { name: 'Graph of stack references' });
      await graph.getByText(`${consumer.project}/dev`).first().waitFor();
      expect(await findBarriers(page)).toEqual([]);
      await page.getByRole('button', { name: 'List' }).click();
      const row = page
        .getByRole('row')
        .filter({ hasText: `${consumer.project}/dev` })
        .first();
      await row.getByRole('link', { name: `${producer.project}/dev` }).waitFor();
      expect(await findBarriers(page)).toEqual([]);
      await page.goto(`${url}/${organization}/${producer.project}/dev`);
      await page.getByRole('link', { name: `${consumer.project}/dev` }).waitFor();
      await page.close();
    },
    scenarioTimeoutMs,
  );

  /** Names of buttons, without what is only drawn. */
  const names = (page: Page, selector: string) =>
    page.locator(selector).evaluateAll((found) => found.map((each) => each.ariaLabel ?? each.textContent ?? ''));

  test(
    'every node of a graph is reached, opened and left by the keyboard',
    async () => {
      const { browser, server } = await web();
      const { organization, url } = server;
      const { page } = await signIn(browser, url, 'ada');
      await page.goto(`${url}/${organization}/${producer.project}/dev?tab=resources&shape=graph`);
      const buttons = page.locator('[data-box] button');
      await buttons.first().waitFor();
      const all = new Set(await names(page, '[data-box] button'));
      expect(all).toContain(`Collapse ${producer.project}-dev`);
      const reached = new Set<string>();
      await page.getByRole('searchbox', { name: 'Search in: Graph of resources' }).focus();
      for (let at = 0; at < (await buttons.count()); at++) {
        await page.keyboard.press('Tab');
        for (const name of await names(page, '[data-box] button:focus')) reached.add(name);
      }
      expect(reached).toEqual(all);
      for (const [key, name] of [
        ['Space', 'cache'],
        ['Enter', 'orders-db'],
      ] as const) {
        await page.goto(`${url}/${organization}/${producer.project}/dev?tab=resources&shape=graph`);
        const node = page.getByRole('button', { name: `${name} pulumi:index:Stash` });
        await node.focus();
        await page.keyboard.press(key);
        await page.getByRole('region', { name: `Resource ${name}` }).waitFor();
        await until(
          async () => (await names(page, '[data-box] button:focus')).includes(`${name} pulumi:index:Stash`),
          'the box has the focus again',
        );
      }
      await page.close();
    },
    scenarioTimeoutMs,
  );

  test(
    'the list of stacks has the columns that one wants, and is a file',
    async () => {
      const { browser, server } = await web();
      const { organization, url } = server;
      const { page } = await signIn(browser, url, 'ada');
      await page.setViewportSize({ width: 1440, height: 900 });
      await page.goto(`${url}/${organization}`);
      await page.getByRole('button', { name: 'Columns' }).click();
      await page.getByRole('menuitem', { name: 'Last update by' }).click();
      await page.getByRole('columnheader', { name: 'Last update by' }).waitFor();
      await page.waitForURL((to) => to.searchParams.get('columns')?.split(',').includes('by') ?? false);
      expect(await findBarriers(page)).toEqual([]);
      await page.goto(`${url}/${organization}?text=${producer.project}`);
      await page.getByRole('columnheader', { name: 'Last update by' }).waitFor();
      const download = page.waitForEvent('download');
      await page.getByRole('link', { name: 'CSV' }).click();
      const lines = (await readFile(await (await download).path(), 'utf8')).trimEnd().split('\r\n');
      expect(lines).toEqual([
        expect.stringMatching(/^organization,project,stack/),
        expect.stringContaining(`${organization},${producer.project},dev,`),
      ]);
      await page.close();
    },
    scenarioTimeoutMs,
  );
});
