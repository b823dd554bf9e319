import { expect, test } from '@jest/globals';
import { callApi, callApiOk } from '../testkit/api-call.ts';
import { expectFailure, outputOf, Scenario, unattended } from '../testkit/scenario.ts';
import { stashProgram } from '../testkit/stash-program.ts';
import { fileServer, scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { until } from '../testkit/until.ts';

await suite('rules for updates', {}, () => {
  const server = fileServer();

  test(
    'the CLI shows why a stack is frozen, still previews, and breaks the glass by its message',
    async () => {
      const holdfast = await server();
      await using scenario = await Scenario.create(holdfast);
      const { workspace, project } = scenario;
      const rules = `orgs/${holdfast.organization}/update-rules`;
      await workspace.writeProgram(stashProgram({ project, count: 2 }));
      const rule = { kind: 'freeze', project, stack: 'dev', settings: { until: '2099-01-01T00:00:00Z' }, note: 'Sale' };
      const { id } = await callApiOk(holdfast, 'POST', rules, rule);
      const frozen = new RegExp(
        `\\[409\\] Frozen: updates of stack ${project}/dev are not allowed until 2099-.*: Sale\\.`,
      );
      await expectFailure(workspace, ['up', ...unattended], frozen);
      await workspace.runOk(['preview', '--non-interactive']);
      await workspace.runOk(['up', ...unattended, '--message', 'break-glass: the shop is down']);
      await expectFailure(workspace, ['stack', 'rm', '--force', '--yes', '--non-interactive'], frozen);
      expect((await callApi(holdfast, 'DELETE', `${rules}/${id}`)).status).toBe(204);
      await workspace.runOk(['stack', 'rm', '--force', '--yes', '--non-interactive']);
    },
    scenarioTimeoutMs,
  );

  test(
    'the CLI shows that an update would remove an output of a stack that another one reads',
    async () => {
      const holdfast = await server();
      await using producer = await Scenario.create(holdfast);
      await using consumer = await Scenario.create(holdfast);
      const program = (outputs: object) => ({ name: producer.project, runtime: 'yaml', resources: {}, outputs });
      await producer.workspace.writeProgram(program({ url: 'http://x', name: 'x' }) as never);
      await producer.workspace.runOk(['up', ...unattended]);
      const name = producer.stackName('dev');
      await consumer.workspace.writeProgram({
        name: consumer.project,
        runtime: 'yaml',
        resources: { ref: { type: 'pulumi:pulumi:StackReference', properties: { name } } },
      });
      await consumer.workspace.runOk(['up', ...unattended]);
      const setRule = async (mode: string) => {
        const rule = { kind: 'consumers', project: producer.project, settings: { mode } };
        await callApiOk(holdfast, 'POST', `orgs/${holdfast.organization}/update-rules`, rule);
      };
      await setRule('refuse');
      const removes = new RegExp(
        `removes the output "name" of stack ${name}, which is read by ${consumer.stackName('dev')}`,
      );
      // The index has the reference some seconds after it was saved.
      await until(async () => {
        const shown = await producer.workspace.run(['destroy', '--preview-only', '--non-interactive']);
        return outputOf(shown).includes('is read by');
      }, 'the reference in the index');
      await producer.workspace.writeProgram(program({ url: 'http://y' }) as never);
      await expectFailure(producer.workspace, ['up', '--yes', '--non-interactive'], removes);
      expect((await producer.workspace.runOk(['stack', 'output', 'name'])).stdout.trim()).toBe('x');
      await setRule('warn');
      const done = await producer.workspace.runOk(['up', '--yes', '--non-interactive']);
      expect(outputOf(done)).toMatch(removes);
    },
    scenarioTimeoutMs,
  );
});
