import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { runAdmin } from '../testkit/admin-command.ts';
import { callApiOk } from '../testkit/api-call.ts';
import { expectFailure, Scenario, unattended } from '../testkit/scenario.ts';
import { thingProgram } from '../testkit/stash-program.ts';
import { scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { until } from '../testkit/until.ts';
import { fileWebServer } from '../testkit/web-server.ts';
import { findBarriers, signIn } from '../testkit/web-session.ts';

const waitMs = 120_000;
const newestMigration = readdirSync(path.join(import.meta.dirname, '../migrations'))
  .filter((file) => file.endsWith('.sql'))
  .sort()
  .at(-1)
  ?.slice(0, -'.sql'.length) as string;

const up = ['up', '--skip-preview', ...unattended];

await suite('pages about CI and for operators', {
  ownServer: true,
  tools: ['pulumi-3.276', 'test-provider', 'chromium'],
}, () => {
  const web = fileWebServer({ settings: { HOLDFAST_LOCK_WAIT_SECONDS: '3600' }, viewers: ['vera'] });

  test(
    'a run that waits is seen in its queue until it runs, and what was refused is listed',
    async () => {
      const { browser, server: holdfast } = await web();
      await using scenario = await Scenario.create(holdfast);
      const { project, workspace } = scenario;
      const { organization, url } = holdfast;
      const ciUrl = `${url}/${organization}/~/ci`;
      const git = async (...args: string[]): Promise<string> => {
        const own = ['-c', 'user.name=e2e', '-c', 'user.email=e2e@example.com', ...args];
        return (await promisify(execFile)('git', own, { cwd: workspace.programDir })).stdout.trim();
      };
      const commit = async (value: string): Promise<string> => {
        await workspace.writeProgram(thingProgram({ project, things: { a: { value } } }));
        await git('add', '.');
        await git('commit', '-q', '-m', value);
        return (await git('rev-parse', 'HEAD')).slice(0, 8);
      };
      await git('init', '-q', '-b', 'main');
      await git('remote', 'add', 'origin', 'https://github.com/example/shop.git');
      await workspace.runOk(['stack', 'tag', 'set', 'supersede', 'branch']);

      const { page, refused } = await signIn(browser, holdfast.url, 'ada');
      await page.goto(ciUrl);
      await page.getByRole('heading', { name: 'No stack is locked' }).waitFor();
      expect(await findBarriers(page)).toEqual([]);
      const runIn = (shown: Page, text: string) =>
        shown
          .getByRole('list', { name: `Queue of ${project}/dev` })
          .getByRole('listitem')
          .filter({ hasText: text });
      const run = (text: string) => runIn(page, text);

      const first = await commit('1');
      await workspace.cloud.control({ slowMs: { 'a.create': 600_000 } });
      const holder = await workspace.spawn(up);
      await run(first)
        .getByRole('button', { name: `Drain ${project}/dev` })
        .waitFor();
      await workspace.cloud.waitStarted('a', 'create', waitMs);
      const second = await commit('2');
      const older = await workspace.spawn(up);
      await run(second)
        .getByRole('button', { name: /^Remove number 1/ })
        .waitFor();
      expect(await run(second).textContent()).toContain('Update by ada');
      const third = await commit('3');
      const newer = await workspace.spawn(up);
      await run(third).waitFor();
      await run(second).waitFor({ state: 'detached' });
      expect((await older.done).exitCode).not.toBe(0);
      expect(await findBarriers(page)).toEqual([]);
      // It would leave for the sign-in page if it asked for something while somebody else signs in.
      await page.close();

      const viewer = await signIn(browser, holdfast.url, 'vera');
      await viewer.page.goto(ciUrl);
      await viewer.page.getByText(third).waitFor();
      expect(await viewer.page.getByRole('button', { name: /Remove number|Drain|Cancel/ }).count()).toBe(0);
      await viewer.page.close();

      const { page: again, refused: refusedAgain } = await signIn(browser, holdfast.url, 'ada');
      await again.goto(ciUrl);
      await runIn(again, first).waitFor();
      // What was begun about a run stays when the run goes on.
      const dialog = again.getByRole('dialog');
      await runIn(again, third)
        .getByRole('button', { name: /^Remove number 1/ })
        .click();
      await dialog.getByLabel('Reason').fill('The wrong branch');
      await workspace.cloud.control({});
      expect((await holder.done).exitCode).toBe(0);
      expect((await newer.done).exitCode).toBe(0);
      await again.locator('main').getByText('No stack is locked').waitFor();
      expect(await dialog.getByLabel('Reason').inputValue()).toBe('The wrong branch');
      await dialog.getByRole('button', { name: 'Remove it' }).click();
      await dialog.getByRole('alert').waitFor();
      await dialog.getByRole('button', { name: 'Keep it waiting' }).click();
      await again.getByRole('heading', { name: 'No stack is locked' }).waitFor();

      const end = '2099-01-01T12:00:00.000Z';
      const freeze = { kind: 'freeze', project, stack: 'dev', settings: { until: end }, note: 'release week' };
      await callApiOk(holdfast, 'POST', `orgs/${organization}/update-rules`, freeze);
      await expectFailure(workspace, up, '[409] Frozen: updates of stack');

      await again.goto(`${ciUrl}?view=refusals`);
      const refusals = again.getByRole('table', { name: 'Refused runs' });
      await refusals.getByText('are not allowed until Jan 1, 2099: release week').waitFor();
      await refusals.getByRole('row', { name: second }).getByText('Superseded').waitFor();
      expect(await findBarriers(again)).toEqual([]);
      await again
        .getByRole('navigation', { name: 'Reasons' })
        .getByRole('link', { name: /^Frozen/ })
        .click();
      await again.waitForURL(/reason=frozen/);
      await refusals.getByText(second).waitFor({ state: 'detached' });

      await again.goto(`${ciUrl}?view=runs&days=30`);
      const row = again.getByRole('table', { name: 'Projects' }).getByRole('row', { name: project });
      await row.waitFor();
      await until(async () => {
        return (await row.getByRole('cell').allTextContents()).slice(0, 3).join() === `${project},2,0 %`;
      }, 'both runs are counted');
      await again.getByText('As a table').first().click();
      const days = again.getByRole('region', { name: 'Runs by day' }).getByRole('row');
      await until(async () => (await days.count()) === 31, 'all days are in the table');
      expect(await findBarriers(again)).toEqual([]);
      await again.goto(`${ciUrl}?view=drift`);
      await again.getByRole('heading', { name: 'No drift was found' }).waitFor();
      expect(await findBarriers(again)).toEqual([]);

      await again.getByRole('navigation', { name: 'Views of CI' }).getByRole('link', { name: 'Delivery' }).click();
      await again.waitForURL(/view=delivery/);
      await again.getByRole('link', { name: '30 days', exact: true }).click();
      const delivered = again.getByRole('table', { name: 'Delivery of projects' }).getByRole('row', { name: project });
      await delivered.getByText('0 %', { exact: true }).waitFor();
      await again.getByText('Median time from a commit’s first run').waitFor();
      expect(await findBarriers(again)).toEqual([]);
      const [download] = await Promise.all([
        again.waitForEvent('download'),
        again.getByRole('link', { name: 'CSV' }).click(),
      ]);
      expect(download.suggestedFilename()).toBe('delivery.csv');
      expect([...refused, ...refusedAgain]).toEqual([]);
    },
    scenarioTimeoutMs,
  );

  test(
    'pages of the installation are for operators only',
    async () => {
      const { browser, server: holdfast } = await web();
      const { page, refused } = await signIn(browser, holdfast.url, 'ada');
      await page.goto(`${holdfast.url}/~/operator`);
      await page.getByRole('heading', { name: 'Page not found' }).waitFor();
      expect(await page.getByRole('link', { name: 'Operations' }).count()).toBe(0);
      await runAdmin(holdfast, 'set-site-admin', 'ada');
      await page.reload();
      await page.getByRole('table', { name: 'Processes' }).getByText('Server').waitFor();
      for (const name of ['Pages', 'Where you are'])
        await page.getByRole('navigation', { name, exact: true }).getByRole('link', { name: 'Operations' }).waitFor();
      expect(await page.getByText('Not used: jobs run in the process').count()).toBe(1);
      expect(await findBarriers(page)).toEqual([]);
      for (const [name, text] of [
        ['Queues', 'there are no queues in Redis'],
        ['Locks', 'No stack is locked'],
        ['Storage', 'checkpoints'],
        ['Tasks', newestMigration],
      ] as const) {
        await page.getByRole('navigation', { name: 'Pages for operators' }).getByRole('link', { name }).click();
        await page.getByText(text).first().waitFor();
        expect({ name, found: await findBarriers(page) }).toEqual({ name, found: [] });
      }
      expect(refused).toEqual([]);
    },
    scenarioTimeoutMs,
  );
});
