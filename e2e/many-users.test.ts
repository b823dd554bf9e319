import { expect, test } from '@jest/globals';

import { resourcesOfType } from '../testkit/pulumi-state.ts';
import { expectFailure, expectNothingToDo, Scenario, unattended } from '../testkit/scenario.ts';
import { chain, reference, secret, stashProgram, thingProgram } from '../testkit/stash-program.ts';
import { fileServer, scenarioTimeoutMs, suite } from '../testkit/suite.ts';

const stackCount = 20;
/** Longer than the others need while the first one holds the stack. */
const longMs = 600_000;

await suite('many users at once', {}, () => {
  const server = fileServer();

  test(
    'only one of them changes a stack, and the others learn why they may not',
    async () => {
      await using scenario = await Scenario.create(await server());
      const { workspace, project } = scenario;
      const things = chain('1');
      await workspace.writeProgram(thingProgram({ project, things }));
      await workspace.runOk(['up', ...unattended]);
      const file = `${workspace.dir}/state.json`;
      await workspace.runOk(['stack', 'export', '--file', file]);

      await workspace.writeProgram(thingProgram({ project, things: { ...things, a: { value: '2' } } }));
      await workspace.cloud.clearStarted();
      await workspace.cloud.control({ slowMs: { 'b.update': longMs } });
      const first = await workspace.spawn(['up', ...unattended]);
      await workspace.cloud.waitStarted('b', 'update', 120_000);
      const listed = (await workspace.runOk(['stack', 'ls', '--json'])).stdout;
      expect(JSON.parse(listed)).toMatchObject([{ name: 'dev', updateInProgress: true }]);
      const refused = [
        ['up', ...unattended],
        ['refresh', ...unattended],
        ['destroy', ...unattended],
        ['stack', 'import', '--file', file],
        ['state', 'unprotect', '--all', '--yes'],
        ['stack', 'rename', 'elsewhere'],
        ['stack', 'rm', '--yes', '--force'],
      ];
      await Promise.all(refused.map((command) => expectFailure(workspace, command, /\[409\]/)));
      await workspace.runOk(['preview', '--non-interactive']);
      await workspace.runOk(['stack', 'output']);

      await workspace.cloud.control({});
      expect(await first.done).toMatchObject({ exitCode: 0 });
      await expectNothingToDo(workspace);
      const values = resourcesOfType(await workspace.exportState(), 'holdfast:index:Thing').map(
        ({ inputs }) => inputs?.['value'],
      );
      expect(values).toEqual(['2', '2', '2']);
    },
    scenarioTimeoutMs,
  );

  test(
    `change ${stackCount} stacks, and each stack has its own state`,
    async () => {
      await using scenario = await Scenario.create(await server());
      const { workspace, project } = scenario;
      const program = stashProgram({
        project,
        count: 10,
        inputOf: (at) => (at === 0 ? reference('stamp') : secret(`hidden ${at}`)),
      });
      await workspace.writeProgram({ ...program, config: { stamp: { type: 'string' } } });
      const stacks = Array.from({ length: stackCount }, (_, at) => `stack-${at}`);
      const runs = stacks.map(async (stack) => {
        await workspace.runOk(['stack', 'init', scenario.stackName(stack), '--no-select']);
        await workspace.runOk(['up', ...unattended, '--stack', stack, '--config', `stamp=of ${stack}`]);
        const state = await workspace.exportState({ stack, showSecrets: true });
        const stashes = resourcesOfType(state, 'pulumi:index:Stash');
        expect(stashes).toHaveLength(10);
        expect(stashes.every(({ urn }) => urn.startsWith(`urn:pulumi:${stack}::`))).toBe(true);
        expect(stashes.map(({ inputs }) => inputs?.['input'])).toContain(`of ${stack}`);
        expect(state.deployment.pending_operations ?? []).toEqual([]);
      });
      await Promise.all(runs);
      const listed = JSON.parse((await workspace.runOk(['stack', 'ls', '--json'])).stdout) as object[];
      expect(listed).toHaveLength(stackCount + 1);
      expect(listed.filter((stack) => 'resourceCount' in stack && stack.resourceCount === 12)).toHaveLength(stackCount);
    },
    scenarioTimeoutMs,
  );
});
