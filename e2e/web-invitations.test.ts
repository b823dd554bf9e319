import { beforeAll, expect, test } from '@jest/globals';
import type { Locator, Page } from 'playwright-core';
import { runAdmin, setPassword } from '../testkit/admin-command.ts';
import type { TestBrowser } from '../testkit/chromium.ts';
import type { OwnHoldfastServer } from '../testkit/holdfast-server.ts';
import { scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { expectSound, fileWebServer } from '../testkit/web-server.ts';
import { filePage, findFlaws, runCommand } from '../testkit/web-session.ts';

const organization = 'dev-org';

await suite('invitations in the web UI', { ownServer: true, tools: ['chromium'] }, () => {
  const web = fileWebServer();
  let server: OwnHoldfastServer;
  let browser: TestBrowser;
  let page: Page;
  const { complaints, dialog, openPage, signInAs } = filePage();

  beforeAll(async () => {
    ({ browser, server } = await web());
    await runAdmin(server, 'create-organization', 'elsewhere');
    for (const login of ['zoe', 'yan']) {
      await runAdmin(server, 'create-user', login, '--organization', 'elsewhere');
      await setPassword(server, login);
    }
    await runAdmin(server, 'unset-site-admin', 'ada', '--force');
    page = await openPage(browser, server.url);
  }, scenarioTimeoutMs);

  const openMembers = () => page.goto(`${server.url}/${organization}/~/members`);
  const invitation = (login: string): Locator =>
    page.getByRole('table', { name: 'Invitations' }).getByRole('row').filter({ hasText: login });

  async function invite(login: string): Promise<void> {
    await page.getByRole('button', { name: 'Invite a member' }).click();
    await dialog().getByLabel('Login').fill(login);
    await dialog().getByLabel('Role').selectOption('viewer');
    await dialog().getByRole('button', { name: 'Invite', exact: true }).click();
    await dialog().waitFor({ state: 'detached' });
    await invitation(login).getByText('viewer', { exact: true }).waitFor();
  }

  test(
    'an admin invites, also nobody, and withdraws',
    async () => {
      await openMembers();
      await page.getByRole('button', { name: 'Invite a member' }).waitFor();
      expect(await page.getByRole('button', { name: 'Add a member' }).count()).toBe(0);
      for (const login of ['zoe', 'yan', 'nobody-at-all']) await invite(login);
      await expectSound(page);
      await page.getByRole('button', { name: 'Actions for the invitation for nobody-at-all' }).click();
      await page.getByRole('menuitem', { name: 'Withdraw' }).click();
      await dialog().getByRole('button', { name: 'Withdraw the invitation' }).click();
      await invitation('nobody-at-all').waitFor({ state: 'detached' });
      await runCommand(page, 'invite', 'Invite a member');
      await dialog().getByLabel('Login').and(page.locator(':focus')).waitFor();
      await page.keyboard.press('Escape');
    },
    scenarioTimeoutMs,
  );

  test(
    'one accepts, sees the organization and leaves it; another declines',
    async () => {
      await signInAs('zoe');
      await page.getByText('An organization has invited you').waitFor();
      const notice = await page.locator('main > section').first().boundingBox();
      const title = await page.getByRole('heading', { level: 1 }).boundingBox();
      // The notice has space below it.
      expect((title?.y ?? 0) - (notice?.y ?? 0) - (notice?.height ?? 0)).toBeGreaterThan(12);
      await page.getByRole('link', { name: 'Respond' }).click();
      await page.getByText(`${organization}, as viewer`).waitFor();
      expect(await findFlaws(page)).toEqual([]);
      await page.getByRole('button', { name: 'Accept' }).click();
      const own = page.getByRole('listitem').filter({ hasText: organization });
      await own.getByText('Leave…').waitFor();
      await openMembers();
      await page.getByRole('row').filter({ hasText: 'zoe' }).waitFor();
      await page.goto(`${server.url}/account`);
      await own.getByText('Leave…').click();
      expect(await findFlaws(page)).toEqual([]);
      await own.getByRole('button', { name: `Leave ${organization}` }).click();
      await own.waitFor({ state: 'detached' });

      await signInAs('yan');
      await page.goto(`${server.url}/account`);
      await page.getByRole('button', { name: 'Decline' }).click();
      await page.getByRole('heading', { name: 'Invitations' }).waitFor({ state: 'detached' });
      await signInAs('ada');
      await openMembers();
      await page.getByRole('row').filter({ hasText: 'ada' }).first().waitFor();
      expect(
        await page
          .getByRole('row')
          .filter({ hasText: /zoe|yan/ })
          .count(),
      ).toBe(0);
    },
    scenarioTimeoutMs,
  );

  test(
    'the last admin sees why leaving is refused; operators read the log of the server',
    async () => {
      await page.goto(`${server.url}/account`);
      const own = page.getByRole('listitem').filter({ hasText: organization });
      await own.getByText('Leave…').click();
      await own.getByRole('button', { name: `Leave ${organization}` }).click();
      await page.getByText('last admin').waitFor();
      await runAdmin(server, 'set-site-admin', 'ada');
      await page.goto(`${server.url}/~/operator/audit`);
      await page.getByRole('row').filter({ hasText: 'Signed in with a browser' }).first().waitFor();
      await expectSound(page);
      expect(complaints).toEqual([]);
    },
    scenarioTimeoutMs,
  );
});
