import { beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { runAdmin, setPassword } from '../testkit/admin-command.ts';
import type { TestBrowser } from '../testkit/chromium.ts';
import type { OwnHoldfastServer } from '../testkit/holdfast-server.ts';
import { scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { fileWebServer } from '../testkit/web-server.ts';
import { findFlaws, signIn } from '../testkit/web-session.ts';

const organization = 'dev-org';
const commit = 'd'.repeat(40);

await suite('approvals that are asked for on the page of a preview', { ownServer: true, tools: ['chromium'] }, () => {
  const web = fileWebServer({ viewers: ['vera'] });
  let server: OwnHoldfastServer;
  let browser: TestBrowser;
  /** Path of the page of a preview. */
  let path: string;

  async function call(at: string, body: object, auth = `token ${server.token}`) {
    const headers = { authorization: auth, accept: 'application/vnd.pulumi+9', 'content-type': 'application/json' };
    const response = await fetch(`${server.url}/api/${at}`, { method: 'POST', headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`${at}: ${response.status} ${await response.text()}`);
    return (await response.json()) as { updateID: string; token: string };
  }

  /** The id of a preview that has succeeded. */
  async function preview(environment: object): Promise<string> {
    const at = `stacks/${organization}/web/prod/preview`;
    const { updateID } = await call(at, { config: {}, metadata: { message: '', environment } });
    const { token } = await call(`${at}/${updateID}`, {});
    await call(`${at}/${updateID}/complete`, { status: 'succeeded' }, `update-token ${token}`).catch(() => {});
    return updateID;
  }

  beforeAll(async () => {
    ({ browser, server } = await web());
    await runAdmin(server, 'create-user', 'mel', '--organization', organization, '--role', 'member');
    await setPassword(server, 'mel');
    await call(`stacks/${organization}/web`, { stackName: 'prod' });
    await call(`orgs/${organization}/update-rules`, { kind: 'change-limit', settings: { changes: 0 } });
    path = `/${organization}/web/prod/previews/${await preview({ 'git.head': commit })}`;
  }, scenarioTimeoutMs);
  const askButton = (page: Page) => page.getByRole('button', { name: 'Request approval' });
  const requested = (page: Page) => page.getByText('The old pool goes', { exact: true });
  async function openAs(login: string, at = path): Promise<Page> {
    const { page } = await signIn(browser, server.url, login);
    await page.goto(`${server.url}${at}`);
    await page.getByRole('heading', { name: /^Preview|^web\/prod/ }).waitFor();
    return page;
  }
  const stackPath = `/${organization}/web/prod`;

  test(
    'a viewer cannot ask; a member asks and withdraws; an approver approves what a member has asked for',
    async () => {
      const viewer = await openAs('vera');
      await viewer.getByText('Succeeded', { exact: true }).waitFor();
      await viewer.locator('[aria-busy="true"]').first().waitFor({ state: 'detached' });
      expect(await askButton(viewer).count()).toBe(0);
      await viewer.close();

      const ask = async (member: Page): Promise<void> => {
        await askButton(member).click();
        const dialog = member.getByRole('dialog');
        expect(await dialog.getByLabel('Commit').inputValue()).toBe(commit);
        await dialog.getByLabel('Reason').fill('The old pool goes');
        expect(await findFlaws(member)).toEqual([]);
        await dialog.getByRole('button', { name: 'Request approval', exact: true }).click();
        await dialog.waitFor({ state: 'detached' });
        await member.goto(`${server.url}${stackPath}`);
        await requested(member).waitFor();
      };
      const member = await openAs('mel');
      await ask(member);
      expect(await member.getByRole('button', { name: 'Approve' }).count()).toBe(0);
      await member.getByRole('button', { name: 'Withdraw' }).click();
      await member.getByRole('dialog').getByRole('button', { name: 'Withdraw', exact: true }).click();
      await requested(member).waitFor({ state: 'detached' });
      await member.goto(`${server.url}${path}`);
      await ask(member);
      await member.close();

      const onlooker = await openAs('vera', stackPath);
      await requested(onlooker).waitFor();
      for (const name of ['Approve', 'Withdraw'])
        expect([name, await onlooker.getByRole('button', { name }).count()]).toEqual([name, 0]);
      await onlooker.close();

      const approver = await openAs('ada', stackPath);
      await requested(approver).waitFor();
      await approver.getByRole('button', { name: 'Approve' }).click();
      const dialog = approver.getByRole('dialog');
      await dialog.getByLabel('Reason').fill('Seen');
      await dialog.getByRole('button', { name: 'Approve', exact: true }).click();
      await requested(approver).waitFor({ state: 'detached' });
      await approver.goto(`${server.url}/${organization}/~/approvals?given=1`);
      await approver.getByRole('row').filter({ hasText: 'mel' }).waitFor();
      await approver.close();
    },
    scenarioTimeoutMs,
  );

  test(
    'nobody can ask for the commit of a working tree with changes, or for one that is not known whole',
    async () => {
      for (const environment of [{ 'git.head': commit, 'git.dirty': 'true' }, { 'git.head': 'dddddddd' }, {}]) {
        const page = await openAs('mel', `/${organization}/web/prod/previews/${await preview(environment)}`);
        await page.getByText('Succeeded', { exact: true }).waitFor();
        await page.locator('[aria-busy="true"]').first().waitFor({ state: 'detached' });
        expect(await askButton(page).count()).toBe(0);
        await page.close();
      }
    },
    scenarioTimeoutMs,
  );

  test(
    'the page of a stack does not wait for approvals that cannot be read',
    async () => {
      const { page } = await signIn(browser, server.url, 'ada');
      let asked = 0;
      const isShown = Promise.withResolvers<void>();
      const error = { message: 'not now', code: -32_603, data: { code: 'SERVICE_UNAVAILABLE', retryAfterSeconds: 10 } };
      await page.route(/approvals\.ofStack/, async (route) => {
        asked += 1;
        // It is never told in the end that it cannot read them.
        if (asked > 1) {
          await isShown.promise;
          return route.abort();
        }
        const names = new URL(route.request().url()).pathname.replace('/trpc/', '').split(',');
        const answers = (await (await route.fetch()).json()) as object[];
        const json = answers.map((answer, at) => (names[at] === 'approvals.ofStack' ? { error } : answer));
        await route.fulfill({ status: 207, json });
      });
      await page.goto(`${server.url}${stackPath}`);
      await page.getByRole('heading', { name: 'Outputs' }).waitFor();
      expect(asked).toBeGreaterThan(0);
      await page.unrouteAll({ behavior: 'ignoreErrors' });
      isShown.resolve();
      await page.close();
    },
    scenarioTimeoutMs,
  );
});
