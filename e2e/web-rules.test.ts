import { execFile } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { afterAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { runAdmin } from '../testkit/admin-command.ts';
import { expectFailure, Scenario, unattended } from '../testkit/scenario.ts';
import { type ThingInputs, thingProgram } from '../testkit/stash-program.ts';
import { scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { until } from '../testkit/until.ts';
import { expectSound, fileWebServer } from '../testkit/web-server.ts';
import { signIn } from '../testkit/web-session.ts';

const hostile = '<img src=x onerror="window.hacked=1"><b>Sale</b>';
const up = ['up', ...unattended];

const received: string[] = [];
const receiver = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    received.push(Buffer.concat(chunks).toString());
    response.writeHead(202, { 'content-type': 'text/html' }).end(hostile);
  });
});
await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
afterAll(() => void receiver.close());
const target = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`;

/** Text of others is text, and the page can be used by everybody. */
async function expectSafe(page: Page): Promise<void> {
  await expectSound(page);
  expect(await page.evaluate('window.hacked')).toBeUndefined();
  expect(await page.locator('main img, main script, a[href^="javascript"]').count()).toBe(0);
}

await suite('pages of what an organization has set', {
  ownServer: true,
  tools: ['pulumi-3.276', 'test-provider', 'chromium'],
}, () => {
  const web = fileWebServer({ reviewer: true, settings: { HOLDFAST_OUTGOING_ALLOW: target }, viewers: ['vera'] });

  test(
    'a stack that is frozen in the browser refuses updates with the note, until it is thawed there',
    async () => {
      const { browser, server: holdfast } = await web();
      await using scenario = await Scenario.create(holdfast);
      const { project, workspace } = scenario;
      await workspace.writeProgram(thingProgram({ project, things: { a: { value: '1' } } }));
      const { page, refused } = await signIn(browser, holdfast.url, 'ada');
      const stackUrl = `${holdfast.url}/${holdfast.organization}/${project}/dev`;
      await page.goto(stackUrl);
      await page.getByRole('button', { name: 'Freeze' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByLabel('Note').fill(hostile);
      await dialog.getByText(`For 1 stack: ${project}/dev`).waitFor();
      await dialog.getByRole('button', { name: 'Weekends' }).click();
      await dialog.getByLabel('Starts (cron)').fill('99 17 * * 5');
      await dialog.getByText('is not valid').waitFor();
      await dialog.getByRole('button', { name: 'Remove this window' }).click();
      await dialog.getByText('In force until thawed').waitFor();
      await dialog.getByRole('button', { name: 'Freeze', exact: true }).click();
      await dialog.waitFor({ state: 'detached' });
      await page.getByText(hostile).waitFor();
      await expectSafe(page);
      const output = await expectFailure(workspace, up, /\[409\] Frozen: updates of stack .*\/dev are not allowed/);
      expect(output).toContain(hostile);

      const viewer = await signIn(browser, holdfast.url, 'vera');
      await viewer.page.goto(stackUrl);
      await viewer.page.getByText(hostile).waitFor();
      expect(await viewer.page.getByRole('button', { name: /Freeze|Thaw/ }).count()).toBe(0);
      expect(await viewer.page.getByRole('link', { name: 'The rule' }).count()).toBe(0);
      await viewer.page.close();

      const admin = await signIn(browser, holdfast.url, 'ada');
      await admin.page.goto(stackUrl);
      await admin.page.getByRole('link', { name: 'The rule' }).click();
      await admin.page.getByText('Linked rule').waitFor();
      await admin.page.getByText('In force').waitFor();
      await expectSafe(admin.page);
      await admin.page.goto(stackUrl);
      await admin.page.getByRole('button', { name: 'Thaw' }).click();
      await admin.page.getByRole('dialog').getByRole('button', { name: 'Thaw' }).click();
      await admin.page.getByRole('button', { name: 'Freeze' }).waitFor();
      await workspace.runOk(up);
      expect([...refused, ...admin.refused]).toEqual([]);
      await Promise.all([page.close(), admin.page.close()]);
    },
    scenarioTimeoutMs,
  );

  test(
    'a run that a change limit has stopped asks, and passes once it is approved in the browser',
    async () => {
      const { browser, server: holdfast } = await web();
      await using scenario = await Scenario.create(holdfast);
      const { project, workspace } = scenario;
      const git = (...args: string[]) =>
        promisify(execFile)('git', ['-c', 'user.name=e2e', '-c', 'user.email=e2e@example.com', ...args], {
          cwd: workspace.programDir,
        });
      await git('init', '-q');
      const commit = async (things: { [name: string]: ThingInputs }): Promise<void> => {
        await workspace.writeProgram(thingProgram({ project, things }));
        await git('add', '.');
        await git('commit', '-q', '-m', hostile);
      };
      // Rita runs it, and so she asks: Ada has to approve.
      const env = { PULUMI_ACCESS_TOKEN: holdfast.reviewerToken };
      await commit({ a: { value: '1' }, b: { value: '2' } });
      await workspace.runOk(up, { env });

      const { page, refused } = await signIn(browser, holdfast.url, 'ada');
      await page.goto(`${holdfast.url}/${holdfast.organization}/~/rules`);
      await page.getByRole('button', { name: 'Add a change limit' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByLabel('Applies to', { exact: true }).selectOption('project');
      await dialog.getByLabel('Project').fill(project);
      await dialog.getByLabel('Maximum deletes and replacements').fill('0');
      await dialog.getByText(`For 1 stack: ${project}/dev`).waitFor();
      await dialog.getByRole('button', { name: 'Add the rule' }).click();
      await page.getByText('At most 0 resources deleted or replaced').waitFor();
      await expectSafe(page);

      await commit({ a: { value: '1' } });
      expect((await workspace.run(up, { env })).exitCode).not.toBe(0);
      await page.goto(`${holdfast.url}/${holdfast.organization}/${project}/dev`);
      await page.getByText(/^Approval requested for [0-9a-f]{8} by/).waitFor();
      await expectSafe(page);
      const viewer = await signIn(browser, holdfast.url, 'vera');
      await viewer.page.goto(`${holdfast.url}/${holdfast.organization}/~/approvals`);
      await viewer.page.getByRole('link', { name: `${project}/dev` }).waitFor();
      expect(await viewer.page.getByRole('button', { name: /Approve/ }).count()).toBe(0);
      expect(await viewer.page.getByRole('link', { name: /Rules|Webhooks|Limits/ }).count()).toBe(0);
      await viewer.page.close();

      const admin = await signIn(browser, holdfast.url, 'ada');
      await admin.page.goto(`${holdfast.url}/${holdfast.organization}/~/approvals`);
      await expectSafe(admin.page);
      await admin.page.getByRole('button', { name: /^Approve .* for / }).click();
      const approve = admin.page.getByRole('dialog');
      await approve.getByLabel('Reason').fill(hostile);
      await approve.getByRole('button', { name: 'Approve', exact: true }).click();
      await admin.page.getByText('No pending requests').waitFor();
      await admin.page.getByRole('link', { name: 'Approved' }).click();
      await admin.page.getByText('Valid', { exact: true }).waitFor();
      await expectSafe(admin.page);
      await workspace.runOk(up, { env });
      expect([...refused, ...admin.refused]).toEqual([]);
      await Promise.all([page.close(), admin.page.close()]);
    },
    scenarioTimeoutMs,
  );

  test(
    'a webhook is made, pinged and sent again from its page, whose secret is never shown',
    async () => {
      const { browser, server: holdfast } = await web();
      const { page, refused } = await signIn(browser, holdfast.url, 'ada');
      const base = `${holdfast.url}/${holdfast.organization}/~`;
      await page.goto(`${base}/webhooks`);
      await page.getByText('No webhooks yet').waitFor();
      await expectSafe(page);
      await page.getByRole('button', { name: 'Add a webhook' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByLabel('Name').fill(hostile);
      await dialog.getByLabel('URL').fill(`${target}/hook`);
      await dialog.getByLabel('Signing secret').fill('very-secret-word');
      await dialog.getByLabel('Events').selectOption('some');
      await dialog.getByLabel('freeze set').check();
      await dialog.getByRole('button', { name: 'Add the webhook' }).click();
      await page.getByRole('heading', { name: hostile }).waitFor();
      await page.getByText('set, never shown').waitFor();
      await page.getByRole('button', { name: 'Send a ping' }).click();
      await page.getByText('Delivered 202').waitFor();
      await page.getByRole('region', { name: 'Response 202, as text' }).getByText(hostile).waitFor();
      expect(received).toHaveLength(1);
      expect(JSON.parse(received[0] as string)).toMatchObject({ type: 'ping' });
      await page.getByRole('button', { name: 'Send again: ping' }).click();
      await page
        .getByRole('row', { name: /ping manual/ })
        .nth(1)
        .waitFor();
      await until(() => received.length === 2, 'it was sent again');
      expect(received[1]).toBe(received[0]);
      expect(await page.content()).not.toContain('very-secret-word');
      await expectSafe(page);
      await page.getByRole('button', { name: 'Remove', exact: true }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Remove', exact: true }).click();
      await page.getByText('No webhooks yet').waitFor();

      for (const [path, text] of [
        ['limits', 'Concurrent updates'],
        ['policies', 'No packs yet'],
      ]) {
        await page.goto(`${base}/${path}`);
        await page.getByText(text as string).waitFor();
        await expectSafe(page);
      }
      await page.getByRole('button', { name: 'Add a group' }).click();
      await page.getByRole('dialog').getByLabel('Name').fill('audited');
      await page.getByRole('dialog').getByRole('button', { name: 'Add the group' }).click();
      await page.getByRole('link', { name: 'Open audited' }).click();
      await page.getByText('None: updates of its stacks run no policies.').waitFor();
      await expectSafe(page);
      await page.close();

      // Operators of the server administer no organization by that.
      await runAdmin(holdfast, 'set-site-admin', 'vera');
      const viewer = await signIn(browser, holdfast.url, 'vera');
      await viewer.page.goto(`${base}/policies?group=audited`);
      await viewer.page.getByText('None: updates of its stacks run no policies.').waitFor();
      expect(await viewer.page.getByRole('button', { name: /Add|Enable|Disable|Remove/ }).count()).toBe(0);
      await viewer.page.close();
      expect([...refused, ...viewer.refused]).toEqual([]);
    },
    scenarioTimeoutMs,
  );
});
