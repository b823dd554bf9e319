import { expect, test } from '@jest/globals';

import { startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { resourcesOfType } from '../testkit/pulumi-state.ts';
import { expectNothingToDo, Scenario, unattended } from '../testkit/scenario.ts';
import { type PulumiProgram, reference, secret, type ThingInputs, thingProgram } from '../testkit/stash-program.ts';
import { fileServer, scenarioTimeoutMs, suite } from '../testkit/suite.ts';

/** The CLI retries after 1, 2 and 4 s. */
const retriedMs = 5_000;

/** Resources that are created one after another, each with a wait. */
function slowChain(project: string, count: number, slowMs: number): PulumiProgram {
  const things: { [name: string]: ThingInputs } = {};
  for (let at = 0; at < count; at++) {
    const value = at === 0 ? 'v' : reference(`t${at - 1}`, 'value');
    things[`t${at}`] = { value, slowMs, secretValue: secret(`secret of ${at}`) };
  }
  return thingProgram({ project, things });
}

await suite('a killed or restarted server', { ownServer: true }, () => {
  const server = fileServer(() => startOwnHoldfast({}, { prepared: true }));

  for (const how of ['killed', 'stopped'] as const) {
    test(
      `during an update, when ${how} and started again, is survived by the CLI`,
      async () => {
        const holdfast = await server();
        await using scenario = await Scenario.create(holdfast);
        const { workspace, project } = scenario;
        await workspace.writeProgram(slowChain(project, 25, 100));
        const cli = await workspace.spawn(['up', ...unattended]);
        await workspace.cloud.waitStarted('t8', 'create', 120_000);
        const downSince = performance.now();
        await (how === 'killed' ? holdfast.kill() : holdfast.stop());
        await holdfast.restart();
        const downMs = performance.now() - downSince;
        const ended = await cli.done;
        // A slow machine may start the server later than the CLI waits; then the user has to clean up.
        if (downMs < retriedMs) expect(ended).toMatchObject({ exitCode: 0 });
        if (ended.exitCode === 0) expect((await workspace.cloud.objects()).size).toBe(25);
        else {
          await workspace.run(['cancel', '--yes']);
          await workspace.runOk(['up', ...unattended]);
          await workspace.runOk(['refresh', ...unattended, '--clear-pending-creates']);
        }
        await expectNothingToDo(workspace);
        const state = await workspace.exportState();
        expect(resourcesOfType(state, 'holdfast:index:Thing')).toHaveLength(25);
        expect(state.deployment.pending_operations ?? []).toEqual([]);
      },
      scenarioTimeoutMs,
    );
  }

  test(
    'loses no action of the provider when the CLI is killed with it',
    async () => {
      const holdfast = await server();
      await using scenario = await Scenario.create(holdfast);
      const { workspace, project } = scenario;
      await workspace.writeProgram(slowChain(project, 12, 50));
      await workspace.cloud.control({ slowMs: { 't7.create': 120_000 } });
      const cli = await workspace.spawn(['up', ...unattended]);
      await workspace.cloud.waitStarted('t7', 'create', 120_000);
      await Promise.all([holdfast.kill(), cli.killAll()]);
      await workspace.cloud.control({});
      await holdfast.restart();
      await workspace.runOk(['cancel', '--yes']);
      const state = await workspace.exportState();
      expect(resourcesOfType(state, 'holdfast:index:Thing').map(({ id }) => id)).toEqual(
        [0, 1, 2, 3, 4, 5, 6].map((at) => `t${at}-1`),
      );
      expect(state.deployment.pending_operations).toMatchObject([
        { type: 'creating', resource: { urn: scenario.thing('t7') } },
      ]);
      await workspace.runOk(['up', ...unattended]);
      await workspace.runOk(['refresh', ...unattended, '--clear-pending-creates']);
      await expectNothingToDo(workspace);
    },
    scenarioTimeoutMs,
  );

  test(
    'keeps stacks, state, history, tags, configuration and secrets',
    async () => {
      const holdfast = await server();
      await using scenario = await Scenario.create(holdfast);
      const { workspace, project } = scenario;
      const program = thingProgram({
        project,
        things: { a: { value: '1', secretValue: reference('password') } },
        outputs: { password: reference('a', 'secretEcho') },
      });
      await workspace.writeProgram({ ...program, config: { password: { type: 'string', secret: true } } });
      await workspace.runOk(['config', 'set', '--secret', 'password', 'hunter2']);
      await workspace.runOk(['stack', 'tag', 'set', 'color', 'blue']);
      await workspace.runOk(['up', ...unattended, '--message', 'before the restart']);
      const ask = async (): Promise<string[]> => {
        const questions = [
          ['stack', 'export'],
          ['stack', 'history', '--output', 'json'],
          ['stack', 'tag', 'ls'],
          ['stack', 'output', '--show-secrets'],
          ['config', 'get', 'password'],
          ['whoami'],
        ];
        return Promise.all(questions.map(async (question) => (await workspace.runOk(question)).stdout));
      };
      const before = await ask();
      await holdfast.stop();
      await holdfast.restart();
      expect(await ask()).toEqual(before);
      await expectNothingToDo(workspace);
    },
    scenarioTimeoutMs,
  );

  test('prints no secret and no token', async () => {
    const holdfast = await server();
    for (const secretText of ['hunter2', 'secret of', holdfast.token]) expect(holdfast.log()).not.toContain(secretText);
  });
});
