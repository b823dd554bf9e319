import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import { holdfastProgram } from '../testkit/holdfast-program.ts';
import { type OwnHoldfastServer, startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { expectNothingToDo, outputOf, Scenario, unattended } from '../testkit/scenario.ts';
import { reference, thingProgram } from '../testkit/stash-program.ts';
import { fileServer, scenarioTimeoutMs, suite } from '../testkit/suite.ts';

async function admin(server: OwnHoldfastServer, ...args: string[]): Promise<string> {
  const env = { PATH: process.env['PATH'], HOLDFAST_DATA_DIR: server.dataDir };
  return (await promisify(execFile)(process.execPath, [holdfastProgram, 'admin', ...args], { env })).stdout;
}

await suite('a revoked token', { ownServer: true }, () => {
  const server = fileServer(() => startOwnHoldfast());

  test(
    'ends its running update; another user continues from the saved state',
    async () => {
      const holdfast = await server();
      await using scenario = await Scenario.create(holdfast);
      const { workspace, project } = scenario;
      const things = {
        a: { value: '1' },
        b: { value: reference('a', 'value') },
        c: { value: reference('b', 'value') },
      };
      await workspace.writeProgram(thingProgram({ project, things }));
      await admin(holdfast, 'create-user', 'mia', '--organization', holdfast.organization);
      const token = (await admin(holdfast, 'create-token', 'mia')).trim();
      await workspace.cloud.control({ slowMs: { 'b.create': 5_000 } });
      const cli = await workspace.spawn(['up', ...unattended], { env: { PULUMI_ACCESS_TOKEN: token } });
      await workspace.cloud.waitStarted('b', 'create', 120_000);
      // It stays in the middle of the step for as long as the others need.
      cli.pause();
      expect(await admin(holdfast, 'revoke', '--user', 'mia')).toMatch(
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
