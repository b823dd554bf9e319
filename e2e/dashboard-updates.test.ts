import { expect, test } from '@jest/globals';
import { Scenario, unattended } from '../testkit/scenario.ts';
import { secret, thingProgram } from '../testkit/stash-program.ts';
import { scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { until } from '../testkit/until.ts';
import { fileWebServer } from '../testkit/web-server.ts';
import { findBarriers, signIn, untilAsWide } from '../testkit/web-session.ts';

const hostile = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>';

await suite('pages of stacks and updates', {
  ownServer: true,
  tools: ['pulumi-3.276', 'test-provider', 'chromium'],
}, () => {
  const web = fileWebServer({ viewers: ['vera'] });

  test(
    'an update is seen while it runs and when it is over',
    async () => {
      const { browser, server: holdfast } = await web();
      await using scenario = await Scenario.create(holdfast);
      const { project, workspace } = scenario;
      const path = `/${holdfast.organization}/${project}/dev`;
      const { page, refused } = await signIn(browser, holdfast.url, 'ada');
      await page.goto(`${holdfast.url}${path}`);
      await page.getByText('This stack has not been updated yet').waitFor();

      await workspace.cloud.control({ slowMs: { slow: 600_000 } });
      const things = { quick: { value: 'a' }, slow: { value: 'b' } };
      const outputs = { address: 'https://web.example/', token: secret('top secret') };
      await workspace.writeProgram(thingProgram({ project, things, outputs }));
      const up = await workspace.spawn(['up', ...unattended, '-m', 'Move the web']);
      await page.getByRole('link', { name: 'View progress' }).click();
      await page.getByRole('heading', { name: /^Update/ }).waitFor();
      const row = page.getByRole('listitem').filter({ hasText: 'slow' });
      await row.getByText('creating').waitFor();
      await page.getByRole('button', { name: 'Drain' }).waitFor();
      await workspace.cloud.control({});
      await page.getByText('Succeeded', { exact: true }).waitFor();
      await row.getByText('created').waitFor();
      expect((await up.done).exitCode).toBe(0);

      await page.goto(`${holdfast.url}${path}`);
      await page.getByText('https://web.example/').waitFor();
      await page.getByRole('row', { name: /token/ }).getByText('secret', { exact: true }).waitFor();
      expect(await page.content()).not.toContain('top secret');
      await page.getByRole('link', { name: /^Update 1/ }).click();
      await page.waitForURL(`${holdfast.url}${path}/updates/1`);
      await page.getByText('Move the web').waitFor();
      expect(refused).toEqual([]);
    },
    scenarioTimeoutMs,
  );

  test(
    'a failed update says why first, and hostile texts stay texts',
    async () => {
      const { browser, server: holdfast } = await web();
      await using scenario = await Scenario.create(holdfast);
      const { project, workspace } = scenario;
      const path = `/${holdfast.organization}/${project}/dev`;
      await workspace.runOk(['stack', 'tag', 'set', 'note', hostile]);
      const things = { broken: { value: 'x', failCreate: true }, [hostile]: { value: hostile } };
      const outputs = { [hostile]: hostile, link: 'javascript:window.hacked=1' };
      await workspace.writeProgram(thingProgram({ project, things, outputs }));
      const env = {
        PULUMI_CI_SYSTEM: 'evil',
        PULUMI_CI_BUILD_ID: hostile,
        PULUMI_CI_BUILD_URL: 'javascript:window.hacked=1',
        PULUMI_CI_PULL_REQUEST_SHA: hostile,
      };
      expect((await workspace.run(['up', ...unattended, '-m', hostile], { env })).exitCode).not.toBe(0);

      const { page, refused } = await signIn(browser, holdfast.url, 'ada');
      const views = ['', '?view=messages', '?view=timing', '?view=events', '?view=details', `?all=1&text=${hostile}`];
      const stackViews = [
        ...['', '?tab=updates&previews=1', '?tab=configuration'],
        ...['?tab=resources', '?tab=resources&shape=tree', '?tab=versions'],
      ];
      for (const url of [
        ...views.map((view) => `${path}/updates/1${view}`),
        ...stackViews.map((view) => path + view),
      ]) {
        await page.goto(`${holdfast.url}${encodeURI(url)}`);
        await page.getByRole('heading', { level: 1 }).waitFor();
        if (url === `${path}/updates/1`) {
          await page
            .getByRole('region', { name: 'Errors' })
            .getByText(/broken/)
            .first()
            .waitFor();
          await page.getByRole('listitem').filter({ hasText: hostile }).first().waitFor();
        }
        // A page that follows a stream is never without a connection.
        await page.locator('[aria-busy="true"]').first().waitFor({ state: 'detached' });
        expect(await page.evaluate('window.hacked')).toBeUndefined();
        expect(await page.locator('a[href^="javascript"], main img, main script').count()).toBe(0);
        expect(await findBarriers(page)).toEqual([]);
        await page.setViewportSize({ width: 390, height: 844 });
        await untilAsWide(page, 390);
        await page.setViewportSize({ width: 1280, height: 720 });
      }
      expect(refused).toEqual([]);
    },
    scenarioTimeoutMs,
  );

  test(
    'a running update is cancelled from its page, on which a viewer sees no buttons',
    async () => {
      const { browser, server: holdfast } = await web();
      await using scenario = await Scenario.create(holdfast);
      const { project, workspace } = scenario;
      await workspace.cloud.control({ slowMs: { '*': 600_000 } });
      await workspace.writeProgram(thingProgram({ project, things: { stuck: { value: 'a' } } }));
      await workspace.spawn(['up', ...unattended]);
      await workspace.cloud.waitStarted('stuck', 'create');
      const url = `${holdfast.url}/${holdfast.organization}/${project}/dev`;
      const viewer = await signIn(browser, holdfast.url, 'vera');
      await viewer.page.goto(`${url}/updates/1`);
      await viewer.page.getByText('Running', { exact: true }).waitFor();
      await viewer.page.getByRole('listitem').filter({ hasText: 'stuck' }).waitFor();
      expect(await viewer.page.getByRole('button', { name: /Cancel|Drain/ }).count()).toBe(0);
      await viewer.page.goto(url);
      await viewer.page.getByText('holds the lock').waitFor();
      expect(await viewer.page.getByRole('button', { name: /tag/ }).count()).toBe(0);
      await viewer.page.close();

      const { page } = await signIn(browser, holdfast.url, 'ada');
      await page.goto(`${url}/updates/1`);
      await page.getByRole('button', { name: 'Cancel' }).click();
      await page.getByRole('button', { name: 'Keep it running' }).click();
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      await page.getByText('Running', { exact: true }).waitFor();
      await page.getByRole('button', { name: 'Cancel' }).click();
      await page.getByRole('button', { name: 'Cancel the update' }).click();
      await page.getByText('Cancelled', { exact: true }).waitFor();
      // The dialog takes its time to close.
      await until(async () => {
        return (await page.getByRole('button', { name: /Cancel|Drain/ }).count()) === 0;
      }, 'there is nothing to end');
    },
    scenarioTimeoutMs,
  );
});
