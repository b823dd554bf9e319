import { expect, test } from '@jest/globals';
import { runAdmin } from '../testkit/admin-command.ts';
import { expectFailure, expectNothingToDo, Scenario, unattended } from '../testkit/scenario.ts';
import { reference, secret, thingProgram } from '../testkit/stash-program.ts';
import { scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { until } from '../testkit/until.ts';
import { expectSound, fileWebServer } from '../testkit/web-server.ts';
import { signIn } from '../testkit/web-session.ts';

const tools = ['pulumi-3.276', 'test-provider', 'chromium'] as const;

await suite('a read-only installation', { ownServer: true, tools }, () => {
  const web = fileWebServer();

  test(
    'lets the running update end, shows the CLI and the browser why everything else is refused, and then goes on',
    async () => {
      const { browser, server: holdfast } = await web();
      await using scenario = await Scenario.create(holdfast);
      const { workspace, project } = scenario;
      const things = { a: { value: '1', secretValue: secret('hunter2') }, b: { value: reference('a', 'value') } };
      await workspace.writeProgram(thingProgram({ project, things }));
      await workspace.cloud.control({ slowMs: { 'b.create': 600_000 } });
      const cli = await workspace.spawn(['up', ...unattended]);
      await workspace.cloud.waitStarted('b', 'create', 120_000);
      const said = await runAdmin(holdfast, 'read-only', 'on', '--reason', 'Postgres moves until noon');
      expect(said).toMatch(/^Read-only since .*: Postgres moves until noon\n1 update is running\.\n$/);

      const refused = /\[503\] This installation is read-only for now: Postgres moves until noon/;
      await until(async () => {
        const { exitCode } = await workspace.run(['stack', 'tag', 'set', 'a', 'b']);
        return exitCode !== 0;
      }, 'the server follows');
      await workspace.cloud.control({});
      const ended = await cli.done;
      expect(ended.exitCode).toBe(0);
      expect(await runAdmin(holdfast, 'read-only', 'status')).toContain('0 updates are running.');

      const state = await workspace.exportState({ showSecrets: true });
      expect(JSON.stringify(state)).toContain('hunter2');
      await workspace.runOk(['stack', 'history']);
      for (const args of [
        ['up', ...unattended],
        ['preview', '--non-interactive'],
        ['destroy', ...unattended],
        ['refresh', ...unattended],
        ['stack', 'init', scenario.stackName('other'), '--non-interactive'],
        ['stack', 'rename', 'renamed', '--non-interactive'],
        ['stack', 'tag', 'set', 'a', 'b'],
        ['stack', 'rm', '--force', '--yes', '--non-interactive'],
      ])
        await expectFailure(workspace, args, refused);

      const { page } = await signIn(browser, holdfast.url, 'ada');
      await page.goto(`${holdfast.url}/${holdfast.organization}/${project}/dev`);
      await page.getByText('This installation is read-only for now').waitFor();
      await page.getByText('Postgres moves until noon').waitFor();
      await expectSound(page);
      await page.close();

      await runAdmin(holdfast, 'read-only', 'off');
      await until(async () => {
        const { exitCode } = await workspace.run(['stack', 'tag', 'set', 'a', 'b']);
        return exitCode === 0;
      }, 'the server follows');
      await expectNothingToDo(workspace);
      await workspace.runOk(['destroy', ...unattended]);
    },
    scenarioTimeoutMs,
  );
});
