import { expect, test } from '@jest/globals';
import type { Locator, Page } from 'playwright-core';
import { outputOf, Scenario, unattended } from '../testkit/scenario.ts';
import { thingProgram } from '../testkit/stash-program.ts';
import { scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { until } from '../testkit/until.ts';
import { fileWebServer } from '../testkit/web-server.ts';
import { findFlaws, signIn } from '../testkit/web-session.ts';

await suite('links to pages, and pages without a server', {
  ownServer: true,
  tools: ['pulumi-3.276', 'test-provider', 'chromium'],
}, () => {
  const web = fileWebServer();

  test(
    'the CLI prints links to the preview and the update, which lead to each other',
    async () => {
      const { browser, server: holdfast } = await web();
      await using scenario = await Scenario.create(holdfast);
      const { project, workspace } = scenario;
      const base = `${holdfast.url}/${holdfast.organization}/${project}/dev`;
      const env = { PULUMI_CONSOLE_DOMAIN: new URL(holdfast.url).host };
      const linksOf = async (...args: string[]): Promise<string[]> =>
        outputOf(await workspace.runOk(args, { env })).match(/https?:\/\/\S+/g) ?? [];
      await workspace.writeProgram(thingProgram({ project, things: { a: { value: '1' } } }));
      const printed = await linksOf('up', '--yes', '--non-interactive');
      const [preview = '', update = ''] = printed;
      expect(preview).toMatch(new RegExp(`^${base}/previews/[0-9a-f-]{36}$`));
      expect(update).toBe(`${base}/updates/1`);
      expect(await linksOf('stack')).toContain(base);

      const { page, refused } = await signIn(browser, holdfast.url, 'ada');
      await page.goto(update);
      await page.getByRole('heading', { name: /^Update 1/ }).waitFor();
      await page.getByRole('link', { name: 'View preview' }).click();
      await page.waitForURL(preview);
      await page.getByRole('heading', { name: /^Preview/ }).waitFor();
      await page.goto(`${preview}?view=details`);
      await page.getByRole('link', { name: 'the update', exact: true }).click();
      await page.getByRole('heading', { name: /^Update 1/ }).waitFor();

      // Links from before a rename lead to the pages of today.
      await workspace.runOk(['stack', 'rename', 'renamed', '--stack', scenario.stackName('dev')]);
      const renamed = `${holdfast.url}/${holdfast.organization}/${project}/renamed`;
      await page.goto(`${update}?view=details`);
      await page.waitForURL(`${renamed}/updates/1?view=details`);
      await page.goto(base);
      await page.waitForURL(renamed);
      await page.getByRole('heading', { name: `${project}/renamed` }).waitFor();
      await workspace.runOk(['stack', 'rename', 'dev', '--stack', scenario.stackName('renamed')]);

      // Other pages that it names, in hints, by `whoami`, and after policy packs are published.
      await page.goto(`${base}/settings/options`);
      await page.waitForURL(base);
      await page.getByRole('heading', { name: `${project}/dev` }).waitFor();
      await page.goto(`${holdfast.url}/${holdfast.organization}/insights/policypacks/security/1.0.0`);
      await page.getByRole('heading', { name: 'Policies', exact: true }).waitFor();
      await page.goto(`${holdfast.url}/ada`);
      await page.waitForURL(`${holdfast.url}/`);
      await page.getByRole('heading', { name: 'Stacks' }).waitFor();
      await page.goto(`${holdfast.url}/user/settings/tokens`);
      await page.waitForURL(`${holdfast.url}/account`);
      await page.goto(`${holdfast.url}/${holdfast.organization}/resources?query=type%3Aa`);
      await page.getByRole('heading', { name: /^Search/ }).waitFor();
      expect(refused).toEqual([]);
      await page.close();
    },
    scenarioTimeoutMs,
  );

  test(
    'a page says that the server does not answer, or has failed, and goes on when it does',
    async () => {
      const { browser, server: holdfast } = await web();
      await using scenario = await Scenario.create(holdfast);
      const { project, workspace } = scenario;
      await workspace.writeProgram(thingProgram({ project, things: { a: { value: '1' } } }));
      await workspace.runOk(['up', ...unattended]);
      const { organization, url } = holdfast;
      const { page, refused } = await signIn(browser, url, 'ada');
      // A page asks four times, with pauses of seven seconds in all, which are passed over here.
      await page.clock.install();
      const stack = `${url}/${organization}/${project}/dev`;
      const pages: readonly (readonly [string, RegExp, string])[] = [
        [`${url}/`, /stacks\.list/, 'Stacks'],
        [stack, /stacks\.get/, `${project}/dev`],
        [`${stack}/updates/1`, /updates\.get/, 'Update 1'],
        [`${url}/${organization}/~/ci?view=refusals`, /ci\.refusals/, 'CI'],
        [`${url}/${organization}/~/references`, /references\.graph/, 'References'],
        [`${url}/${organization}/~/members`, /members\.list/, 'Members'],
      ];
      for (const [address, procedure, title] of pages) {
        let asked = 0;
        // Else the page learns that the server answers, and reads all again.
        await page.route(probe, (route) => route.abort());
        await page.route(procedure, (route) => {
          asked += 1;
          return route.abort();
        });
        await page.goto(address);
        // Later, a clock that runs ahead would let the page ask again by itself.
        const notice = page.getByRole('heading', { name: 'The server does not answer' });
        await passPauses(page, notice, () => asked < asksOfQuery);
        expect(asked).toBe(asksOfQuery);
        expect(await findFlaws(page)).toEqual([]);
        await page.unroute(procedure);
        await page.unroute(probe);
        await tryAgain(page, notice);
        await page.getByRole('heading', { name: title }).first().waitFor();
      }

      const fault = {
        error: { message: 'Something failed on the server', code: -32603, data: { code: 'INTERNAL_SERVER_ERROR' } },
      };
      await page.route(/updates\.list/, (route) =>
        route.fulfill({ status: 500, contentType: 'application/json', body: JSON.stringify([fault]) }),
      );
      await page.goto(`${stack}?tab=updates`);
      await passPauses(page, page.getByRole('heading', { name: 'Something went wrong' }));
      // If another call went with this one, the top of the page says so, too.
      const updates = page.getByRole('region', { name: 'Updates' });
      await updates.getByText('Something failed on the server').waitFor();
      await page.unroute(/updates\.list/);
      await updates.getByRole('button', { name: 'Try again' }).click();
      await page.getByRole('link', { name: /^Update 1/ }).waitFor();

      // What is shown stays, and the page says that it may be old.
      await page.goto(`${url}/${organization}`);
      const row = page.getByRole('row').filter({ hasText: `${project}/dev` });
      await row.waitFor();
      await page.route('**/trpc/**', (route) => route.abort());
      await page.evaluate('document.dispatchEvent(new Event("visibilitychange"))');
      await passPauses(page, page.getByText('The page may be out of date'));
      expect(await row.count()).toBe(1);
      expect(await findFlaws(page)).toEqual([]);
      await page.unroute('**/trpc/**');
      await tryAgain(page, page.getByText('The page may be out of date'));
      expect(refused).toEqual([]);
      await page.close();
    },
    scenarioTimeoutMs,
  );
});

/** The call by which a page asks whether the server answers again. */
const probe = /\/trpc\/me\.get$/;

/** How often a page asks before it says that nobody answers. */
const asksOfQuery = 4;

/** Clicks the button of a notice until the notice is gone. A page that nobody answers also asks by itself, perhaps before the click. */
async function tryAgain(page: Page, notice: Locator): Promise<void> {
  const button = page.getByRole('button', { name: 'Try again' });
  await until(async () => {
    if (await button.isVisible()) await button.click({ timeout: clickMs }).catch(() => undefined);
    return !(await notice.isVisible());
  }, 'the notice is gone');
}

/** The button may go at any moment. */
const clickMs = 5_000;

/** Waits until it is shown, and lets the clock of the page run ahead while the page pauses. */
async function passPauses(page: Page, shown: Locator, pauses: () => boolean = () => true): Promise<void> {
  await until(async () => {
    if (await shown.isVisible()) return true;
    if (pauses()) await page.clock.fastForward(1_000);
    return false;
  }, 'it is shown');
}
