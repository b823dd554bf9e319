import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { runAdmin } from '../testkit/admin-command.ts';
import { callApi, callApiOk } from '../testkit/api-call.ts';
import type { TestBrowser } from '../testkit/chromium.ts';
import type { OwnHoldfastServer } from '../testkit/holdfast-server.ts';
import { scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { until } from '../testkit/until.ts';
import { expectSound, fileWebServer } from '../testkit/web-server.ts';
import { filePage, runCommand } from '../testkit/web-session.ts';

const organization = 'dev-org';
const commit = 'c'.repeat(40);

const received: string[] = [];
/** The receiver answers after this. */
let held: Promise<void> = Promise.resolve();
const receiver = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    received.push(Buffer.concat(chunks).toString());
    void held.then(() => response.writeHead(202).end('taken'));
  });
});
await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
afterAll(() => void receiver.close());
const target = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`;

await suite('settings in the web UI', { ownServer: true, tools: ['chromium'] }, () => {
  const web = fileWebServer({ reviewer: true, settings: { HOLDFAST_OUTGOING_ALLOW: target }, viewers: ['vera'] });
  let server: OwnHoldfastServer;
  let browser: TestBrowser;
  let page: Page;
  const { complaints, confirm, dialog, openPage, row, signInAs } = filePage();

  const api = (method: string, path: string, body?: object, token = server.token) =>
    callApi({ url: server.url, token }, method, path, body);
  const call = (method: string, path: string, body?: object) => callApiOk(server, method, path, body);

  beforeAll(async () => {
    ({ browser, server } = await web());
    await call('POST', `stacks/${organization}/web`, { stackName: 'prod', tags: { env: 'production' } });
    const changeLimit = { kind: 'change-limit', settings: { changes: 0 } };
    await call('POST', `orgs/${organization}/update-rules`, changeLimit);
    page = await openPage(browser, server.url);
  }, scenarioTimeoutMs);
  const open = (path: string) => page.goto(`${server.url}/${organization}/${path}`);
  const suggested = (value: string) => page.locator(`datalist option[value="${value}"]`).first();

  test(
    'a rule with many types is added, and a link leads to a rule beyond the first page',
    async () => {
      await open('~/rules');
      await page.getByRole('button', { name: 'Add a change limit' }).click();
      await dialog().getByLabel('Kind').selectOption('protected-types');
      const types = Array.from({ length: 100 }, (_, at) => `aws:s3/bucketWithALongName${at}:BucketWithALongName${at}`);
      await dialog().getByLabel('Types of resources').fill(types.join('\n'));
      await dialog().getByText('For 1 stack: web/prod').waitFor();
      expect(await page.getByText('The server does not answer').count()).toBe(0);
      await confirm('Add the rule');

      const ids: string[] = [];
      for (let at = 10; at < 62; at++) {
        const freeze = { kind: 'freeze', project: 'web', stack: `s${at}`, settings: { until: '2098-01-01T00:00:00Z' } };
        ids.push((await call('POST', `orgs/${organization}/update-rules`, freeze)).id);
      }
      await open(`~/rules?rule=${ids.at(-1)}`);
      await row('web/s61').getByText('Linked rule').waitFor();
      const { id } = (await call('GET', `orgs/${organization}/update-rules`)).rules.find(
        ({ kind }: { kind: string }) => kind === 'protected-types',
      );
      for (const each of [...ids, id]) await api('DELETE', `orgs/${organization}/update-rules/${each}`);
      await open(`~/rules?rule=${id}`);
      await page.getByText('The linked rule no longer exists.').waitFor();
      await expectSound(page);
    },
    scenarioTimeoutMs,
  );

  test(
    'a freeze gets another end, reason and place, and stays the same rule',
    async () => {
      await open('~/rules');
      await page.getByRole('button', { name: 'Freeze', exact: true }).click();
      await dialog().getByLabel('Applies to', { exact: true }).selectOption('tag');
      await dialog().getByLabel('Tag').fill('e');
      await suggested('env').waitFor({ state: 'attached' });
      await dialog().getByLabel('Tag').fill('env');
      await suggested('production').waitFor({ state: 'attached' });
      await dialog().getByLabel('Value').fill('production');
      await dialog().getByLabel('Until').fill('2098-12-24T18:30');
      await dialog().getByRole('button', { name: 'Weekends' }).click();
      await confirm('Freeze');
      const change = page.getByRole('button', { name: 'Edit the freeze of stacks with the tag env=production' });
      const findFreeze = async () => {
        const { rules } = await call('GET', `orgs/${organization}/update-rules`);
        return rules.find(({ kind }: { kind: string }) => kind === 'freeze');
      };
      const before = await findFreeze();
      await change.focus();
      await page.keyboard.press('Enter');
      await dialog().waitFor();
      expect(await dialog().getByLabel('Until').inputValue()).toBe('2098-12-24T18:30');
      expect(await dialog().getByLabel('Hours').inputValue()).toBe('61');
      await dialog().getByLabel('Until').fill('2097-01-02T03:04');
      await dialog().getByRole('button', { name: 'Remove this window' }).click();
      await dialog().getByLabel('Applies to', { exact: true }).selectOption('project');
      await dialog().getByLabel('Project').fill('w');
      await suggested('web').waitFor({ state: 'attached' });
      await dialog().getByLabel('Project').fill('web');
      await dialog().getByLabel('Note').fill('Moved to the second of January');
      await dialog().getByText('For 1 stack: web/prod').waitFor();
      await expectSound(page);
      await confirm('Save');
      await page.getByText('Moved to the second of January').waitFor();
      const after = await findFreeze();
      expect(after).toMatchObject({ id: before?.id, project: 'web', note: 'Moved to the second of January' });
      expect(after?.settings).toEqual({ until: expect.stringMatching(/^2097-01-0/) });
      await expectSound(page);
      await page.getByRole('button', { name: 'Thaw project web' }).click();
      await confirm('Thaw');
    },
    scenarioTimeoutMs,
  );

  test(
    'a stack has webhooks of its own, for users who may delete it',
    async () => {
      await open('web/prod?tab=webhooks');
      await page.getByText('No webhooks yet').waitFor();
      await expectSound(page);
      await page.setViewportSize({ width: 390, height: 844 });
      await page.reload();
      await until(async () => {
        const tab = await page.getByRole('link', { name: 'Webhooks', exact: true }).boundingBox();
        return tab !== null && tab.x >= 0 && tab.x + tab.width <= 390;
      }, 'the tab is in sight');
      await page.setViewportSize({ width: 1280, height: 900 });
      await page.getByRole('button', { name: 'Add a webhook' }).click();
      await dialog().getByLabel('Name').fill('Alarm');
      await dialog().getByLabel('URL').fill(`${target}/hook`);
      await dialog().getByLabel('Signing secret').fill('very-secret-word');
      await confirm('Add the webhook');
      await page.getByRole('heading', { name: 'Alarm' }).waitFor();
      await page.getByRole('button', { name: 'Send a ping' }).click();
      await page.getByText('Delivered 202').waitFor();
      await page.waitForURL(/delivery=/);
      await page.getByRole('button', { name: 'Send again: ping' }).click();
      await page
        .getByRole('row', { name: /ping manual/ })
        .nth(1)
        .waitFor();
      await until(() => received.length === 2, 'it was sent again');
      expect(received[1]).toBe(received[0]);
      expect(await page.content()).not.toContain('very-secret-word');
      await expectSound(page);
      // The answer to a ping does not take a user back who has left the page meanwhile.
      const hook = page.url();
      for (const again of ['Send a ping', 'Send again: ping']) {
        const { promise, resolve: answer } = Promise.withResolvers<void>();
        held = promise;
        const answered = page.waitForResponse(/webhooks\.ofStack\.(ping|redeliver)/);
        const sent = received.length;
        await page.getByRole('button', { name: again }).first().click();
        await until(() => received.length > sent, 'the receiver has the request');
        await page.getByRole('link', { name: 'Trends', exact: true }).click();
        await page.waitForURL(/tab=trends/);
        const visited: string[] = [];
        page.on('framenavigated', (frame) => visited.push(frame.url()));
        answer();
        await (await answered).finished();
        await page.getByRole('link', { name: 'Updates', exact: true }).click();
        await page.waitForURL(/tab=updates/);
        expect(visited.filter((url) => url.includes('delivery='))).toEqual([]);
        page.removeAllListeners('framenavigated');
        await page.goto(hook);
      }
      // A link to a delivery that is gone says so in the page, and can be closed.
      await page.goto(page.url().replace(/delivery=[^&]+/, 'delivery=018f0000-0000-7000-8000-000000000000'));
      await page.getByRole('heading', { name: 'Linked delivery' }).waitFor();
      await page.getByText('This part cannot be shown').waitFor();
      expect(await page.getByRole('link', { name: 'Go to the stacks' }).count()).toBe(0);
      await page.getByRole('button', { name: 'Hide', exact: true }).click();
      await page.getByRole('heading', { name: 'Linked delivery' }).waitFor({ state: 'detached' });
      await page.getByRole('button', { name: 'Edit', exact: true }).click();
      await dialog().getByLabel('Active').uncheck();
      await confirm('Save');
      await page.getByText('Paused').waitFor();
      await page.getByRole('link', { name: 'All webhooks of the stack' }).click();
      await row('Alarm').getByText('Paused').waitFor();
      await expectSound(page);
      // A configuration declares it, which an admin sees in the list and on its page.
      const hooks = await api('GET', `stacks/${organization}/web/prod/hooks`);
      const [{ name }] = (await hooks.json()) as [{ readonly name: string }];
      const declared = { kind: 'StackWebhook', name: 'one', object: `web/prod/${name}`, labels: {} };
      expect(await api('PATCH', `orgs/${organization}/managed-objects`, { set: [declared] })).toMatchObject({
        ok: true,
      });
      await page.reload();
      await row('Alarm').getByText('Managed by apply').waitFor();
      await page.getByRole('link', { name: 'Alarm' }).click();
      await page.getByRole('heading', { name: 'Alarm' }).getByText('Managed by apply').waitFor();
      await page.getByRole('button', { name: 'Remove', exact: true }).click();
      await dialog().getByText('A configuration declares it as StackWebhook').waitFor();
      expect(await dialog().getByRole('button', { name: 'Remove', exact: true }).isEnabled()).toBe(false);
      await expectSound(page);
      const undeclared = { remove: [{ kind: declared.kind, name: declared.name }] };
      expect(await api('PATCH', `orgs/${organization}/managed-objects`, undeclared)).toMatchObject({ ok: true });
      // Those of the organization are others.
      await open('~/webhooks');
      await page.getByText('No webhooks yet').waitFor();
      await open('web/prod?tab=webhooks');
      await page.getByRole('link', { name: 'Alarm' }).click();
      await page.getByRole('button', { name: 'Remove', exact: true }).click();
      await confirm('Remove');
      await page.getByText('No webhooks yet').waitFor();
    },
    scenarioTimeoutMs,
  );

  test(
    'an approval is asked for, withdrawn, given by somebody else and taken back',
    async () => {
      await open('web/prod');
      await page.getByRole('button', { name: 'Request approval' }).click();
      expect(await dialog().getByRole('button', { name: 'Request approval', exact: true }).isEnabled()).toBe(false);
      await dialog().getByLabel('Commit').fill(commit);
      await dialog().getByLabel('Reason').fill('The old pool goes');
      await expectSound(page);
      await confirm('Request approval');
      await page.getByText('The old pool goes').waitFor();
      await expectSound(page);
      await page.getByRole('button', { name: 'Withdraw' }).click();
      await confirm('Withdraw');
      await page.getByText('The old pool goes').waitFor({ state: 'detached' });

      const path = `stacks/${organization}/web/prod/approvals`;
      const asked = await api('POST', path, { commit, reason: 'By a colleague' }, server.reviewerToken);
      expect(asked.status).toBe(200);
      await open('~/approvals');
      await page.getByRole('button', { name: 'Approve cccccccc for web/prod' }).click();
      await dialog().getByLabel('Reason').fill('Seen');
      await confirm('Approve');
      await page.getByRole('link', { name: 'Approved' }).click();
      await expectSound(page);
      await page.getByRole('button', { name: 'Revoke cccccccc for web/prod' }).click();
      await confirm('Revoke');
      await page.getByText('No approvals yet').waitFor();
    },
    scenarioTimeoutMs,
  );

  test(
    'no list of tokens is shown before it is known whose tokens the page is about',
    async () => {
      const known = Promise.withResolvers<void>();
      await page.route(/me\.get/, async (route) => {
        await known.promise;
        await route.continue();
      });
      await open('~/tokens');
      await page.getByRole('heading', { name: 'Tokens', level: 1 }).waitFor();
      expect(await page.getByRole('button', { name: 'Create a token' }).count()).toBe(0);
      known.resolve();
      await page.getByRole('button', { name: 'Create a token' }).click();
      await dialog().waitFor();
      expect(await page.getByText(`Of ${organization}`, { exact: true }).count()).toBe(1);
      await page.unroute(/me\.get/);
      await page.keyboard.press('Escape');
      await dialog().waitFor({ state: 'detached' });
    },
    scenarioTimeoutMs,
  );

  test(
    'a token gets another value, which is shown once; the one before ends when it was chosen to',
    async () => {
      await open('~/tokens');
      await page.getByRole('button', { name: 'Create a token' }).click();
      await dialog().getByLabel('Name').fill('deploy');
      expect(await dialog().getByLabel('Expires after').inputValue()).toBe('90');
      await dialog().getByRole('button', { name: 'Create the token' }).click();
      const shown = async () => (await dialog().locator('pre').textContent()) ?? '';
      const first = await shown();
      await confirm('I have stored it');
      const rotate = async (overlap: string) => {
        // Two clicks with the button of the dialog.
        await page.getByRole('button', { name: 'Rotate deploy', exact: true }).click();
        await dialog().getByLabel('The current value stays valid for').selectOption({ label: overlap });
        const sent = Promise.withResolvers<void>();
        await page.route(/tokens\.rotate/, async (route) => {
          await sent.promise;
          await route.continue();
        });
        await dialog().getByRole('button', { name: 'Rotate the token' }).click();
        const cancel = dialog().getByRole('button', { name: 'Cancel' });
        await until(async () => !(await cancel.isEnabled()), 'the call is sent');
        // Closing now would lose the value: the server replaces the one before in any case.
        await page.keyboard.press('Escape');
        expect(await cancel.isEnabled()).toBe(false);
        sent.resolve();
        await dialog().getByText('It is shown only once').waitFor();
        await page.unroute(/tokens\.rotate/);
        await page.mouse.click(5, 5);
        await page.keyboard.press('Escape');
        const value = await shown();
        await expectSound(page);
        // As without TLS.
        await page.evaluate(() =>
          Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true }),
        );
        await dialog().getByRole('button', { name: 'Copy' }).click();
        await dialog().getByRole('button', { name: 'Copied' }).waitFor();
        await confirm('I have stored it');
        return value;
      };
      const statusOf = async (token: string) =>
        (await api('GET', `stacks/${organization}/web/prod`, undefined, token)).status;
      const second = await rotate('An hour');
      expect([await statusOf(first), await statusOf(second)]).toEqual([200, 200]);
      await row('deploy').getByText('previous value').waitFor();
      const third = await rotate('No time: it is revoked now');
      expect([await statusOf(second), await statusOf(third)]).toEqual([401, 200]);
      expect(await page.content()).not.toContain(third);
      await expectSound(page);

      await runAdmin(server, 'token', 'max-days', '20', '--organization', organization);
      await page.reload();
      await page.getByRole('button', { name: 'Create a token' }).click();
      await dialog().getByText('The organization limits').waitFor();
      expect(await dialog().getByLabel('Expires after').locator('option').allTextContents()).toEqual([
        '7 days',
        '20 days, the longest',
      ]);
      await page.keyboard.press('Escape');
    },
    scenarioTimeoutMs,
  );

  test(
    'what roles give is changed after its name is typed where rights are taken away',
    async () => {
      await open('~/access');
      await page.getByText('All permissions of the role').waitFor();
      await expectSound(page);
      await page.getByRole('button', { name: 'Edit role permissions' }).click();
      await dialog().getByLabel('Role permissions').selectOption('some');
      await dialog().getByRole('checkbox', { name: 'decrypt' }).uncheck();
      await dialog().getByText('Viewers and members lose decrypt unless a grant allows it').waitFor();
      const take = dialog().getByRole('button', { name: 'Remove permissions' });
      expect(await take.isEnabled()).toBe(false);
      await dialog().getByLabel('to confirm').fill(organization);
      await expectSound(page);
      await confirm('Remove permissions');
      await page.getByText('Only admins, and holders of a grant, can decrypt them').waitFor();
      await page.getByRole('button', { name: 'Allow by role' }).click();
      await confirm('Allow by role');
      await page.getByText('All permissions of the role').waitFor();
    },
    scenarioTimeoutMs,
  );

  test(
    'the palette goes to pages and begins actions by the keyboard alone',
    async () => {
      await open('web/prod');
      await page.getByRole('heading', { name: 'web/prod' }).waitFor();
      await runCommand(page, 'trust pol', 'Trust policies');
      await page.getByRole('heading', { name: 'Trust policies' }).waitFor();
      await runCommand(page, 'add a member', 'Add a member');
      await dialog().getByLabel('Login').and(page.locator(':focus')).waitFor();
      expect(page.url()).toContain('/~/members');
      await page.keyboard.press('Escape');
      await dialog().waitFor({ state: 'detached' });
      await open('web/prod');
      await page.getByRole('button', { name: 'Freeze' }).waitFor();
      await runCommand(page, 'freeze this', 'Freeze this stack');
      await dialog().getByRole('heading', { name: 'Freeze web/prod' }).waitFor();
      await dialog().locator(':focus').waitFor();
      await page.keyboard.press('Escape');
      await dialog().waitFor({ state: 'detached' });
      await page.keyboard.press('Control+k');
      await page.getByRole('option', { name: 'Webhooks' }).waitFor();
      await expectSound(page);
      await page.keyboard.press('Escape');
    },
    scenarioTimeoutMs,
  );

  test(
    'a viewer has none of these buttons',
    async () => {
      await signInAs('vera');
      await open('web/prod');
      await page.getByRole('heading', { name: 'web/prod' }).waitFor();
      expect(await page.getByRole('button', { name: /Request approval|Freeze/ }).count()).toBe(0);
      expect(await page.getByRole('link', { name: 'Webhooks' }).count()).toBe(0);
      await page.keyboard.press('Control+k');
      await page.getByRole('option', { name: 'Approvals' }).waitFor();
      expect(await page.getByRole('option', { name: /Freeze|Add a|Access|Rules|Health/ }).count()).toBe(0);
      await page.keyboard.press('Escape');
      await open('~/members');
      await row('vera').waitFor();
      expect(await page.getByRole('button', { name: 'Add a member' }).count()).toBe(0);
      expect(complaints).toEqual([]);
    },
    scenarioTimeoutMs,
  );
});
