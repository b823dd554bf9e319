import { expect, test } from '@jest/globals';
import { runAdmin } from '../testkit/admin-command.ts';
import { startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { expectNothingToDo, outputOf, Scenario, unattended } from '../testkit/scenario.ts';
import { chain, thingProgram } from '../testkit/stash-program.ts';
import { fileServer, scenarioTimeoutMs, suite } from '../testkit/suite.ts';

await suite('a revoked token', { ownServer: true }, () => {
  const server = fileServer(() => startOwnHoldfast({}, { prepared: true }));

  test(
    'ends its running update; another user continues from the saved state',
    async () => {
      const holdfast = await server();
      await using scenario = await Scenario.create(holdfast);
      const { workspace, project } = scenario;
      const things = chain('1');
      await workspace.writeProgram(thingProgram({ project, things }));
      await runAdmin(holdfast, 'create-user', 'mia', '--organization', holdfast.organization);
      const token = (await runAdmin(holdfast, 'user', 'create-token', 'mia')).trim();
      await workspace.cloud.control({ slowMs: { 'b.create': 600_000 } });
      const cli = await workspace.spawn(['up', ...unattended], { env: { PULUMI_ACCESS_TOKEN: token } });
      await workspace.cloud.waitStarted('b', 'create', 120_000);
      // It stays in the middle of the step for as long as the others need.
      cli.pause();
      expect(await runAdmin(holdfast, 'revoke', '--user', 'mia')).toMatch(
        /Revoked 1 token of mia\.\nUpdate .* was cancelled/,
      );

      const before = await workspace.exportState();
      expect(before.deployment.pending_operations?.map(({ type }) => type)).toEqual(['creating']);
      // At once, while the CLI of the other one is still running.
      await workspace.cloud.control({});
      await workspace.runOk(['up', ...unattended, '--target', scenario.thing('a')]);

      cli.resume();
      const ended = await cli.done;
      expect(outputOf(ended)).toMatch(
        /\[403\] This update was cancelled: the API token under which it was started was revoked/,
      );
      expect(ended.exitCode).not.toBe(0);
      const history = JSON.parse((await workspace.runOk(['stack', 'history', '--json'])).stdout) as {
        result: string;
      }[];
      expect(history.map(({ result }) => result)).toEqual(['succeeded', 'failed']);
      await workspace.runOk(['refresh', ...unattended, '--clear-pending-creates']);
      await workspace.runOk(['up', ...unattended]);
      await expectNothingToDo(workspace);
    },
    scenarioTimeoutMs,
  );
});
