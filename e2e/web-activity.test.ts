import { beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import type { OwnHoldfastServer } from '../testkit/holdfast-server.ts';
import { scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { expectSound, fileWebServer } from '../testkit/web-server.ts';
import { filePage } from '../testkit/web-session.ts';

const organization = 'dev-org';

await suite('what needs attention', { ownServer: true, tools: ['chromium'] }, () => {
  const web = fileWebServer({ viewers: ['vera'] });
  const { complaints, openPage, row } = filePage();
  let server: OwnHoldfastServer;
  let page: Page;

  async function call(at: string, body: object, auth = `token ${server.token}`) {
    const headers = { authorization: auth, accept: 'application/vnd.pulumi+9', 'content-type': 'application/json' };
    const response = await fetch(`${server.url}/api/${at}`, { method: 'POST', headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`${at}: ${response.status} ${await response.text()}`);
    return (await response.json()) as { updateID: string; token: string };
  }

  /** Runs an update of a stack to its end. */
  async function run(stack: string, status: string, message = ''): Promise<void> {
    const at = `stacks/${organization}/${stack}/update`;
    const { updateID } = await call(at, { config: {}, metadata: { message, environment: {} } });
    const { token } = await call(`${at}/${updateID}`, {});
    await call(`${at}/${updateID}/complete`, { status }, `update-token ${token}`).catch(() => {});
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

      for (const stackName of ['prod', 'dev']) await call(`stacks/${organization}/web`, { stackName });
      await run('web/prod', 'failed', 'The pool moves');
      await call(`orgs/${organization}/update-rules`, { kind: 'freeze', note: 'the fair', settings: {} });
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
      expect(complaints).toEqual([]);
    },
    scenarioTimeoutMs,
  );
});
