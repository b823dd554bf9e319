import { expect, test } from '@jest/globals';
import type { ExportedState } from './support/pulumi-state.ts';
import {
  expectFailure,
  expectNothingToDo,
  expectSameAsFileBackend,
  inOrder,
  outputOf,
  Scenario,
  unattended,
} from './support/scenario.ts';
import { reference, type ThingInputs, thingProgram } from './support/stash-program.ts';
import { fileServer, scenarioTimeoutMs, suite } from './support/suite.ts';
import type { CloudControl, CloudOperation } from './support/test-cloud.ts';

const longMs = 120_000;

/** Starts `up` and kills everything as soon as an operation has begun. */
async function killDuring(scenario: Scenario, name: string, op: CloudOperation, control: CloudControl): Promise<void> {
  const { workspace } = scenario;
  await workspace.cloud.control(control);
  await workspace.cloud.clearStarted();
  const cli = await workspace.spawn(['up', ...unattended]);
  await workspace.cloud.waitStarted(name, op, 60_000);
  await cli.killAll();
  await workspace.cloud.control({});
}

function pendingOperations({ deployment }: ExportedState): string[] {
  return (deployment.pending_operations ?? []).map(({ type, resource }) => `${type} ${resource.urn.split('::').pop()}`);
}

await suite('a CLI that is killed', {}, () => {
  const server = fileServer();

  test.concurrent(
    'leaves its work and its pending operations, and blocks the stack until it is cancelled',
    async () => {
      await expectSameAsFileBackend(await server(), async (scenario) => {
        const { workspace, project } = scenario;
        const chain = (value: string): { [name: string]: ThingInputs } => ({
          a: { value },
          b: { value: reference('a', 'value') },
          c: { value: reference('b', 'value'), replaceOn: reference('b', 'value'), deleteBeforeReplace: true },
        });
        const write = (value: string): Promise<void> =>
          workspace.writeProgram(thingProgram({ project, things: chain(value) }));

        await write('1');
        await killDuring(scenario, 'b', 'create', { slowMs: { 'b.create': longMs } });
        await expectFailure(workspace, ['up', ...unattended], /\[409\]|the stack is currently locked/);
        await workspace.runOk(['cancel', '--yes']);
        expect(pendingOperations(await workspace.exportState())).toEqual(['creating b']);
        await scenario.keepInOrder('killed during a create');
        const next = await workspace.runOk(['up', ...inOrder]);
        expect(outputOf(next)).toContain('pending operations');
        await scenario.keepInOrder('up after the create');
        await workspace.runOk(['refresh', ...inOrder, '--clear-pending-creates']);
        await scenario.keepInOrder('pending create cleared');

        // The object is updated in the cloud, and the engine is not told.
        await write('2');
        await killDuring(scenario, 'c', 'create', { slowAfterMs: { 'c.create': longMs } });
        await workspace.runOk(['cancel', '--yes']);
        expect(pendingOperations(await workspace.exportState())).toEqual(['creating c']);
        await scenario.keepInOrder('killed during a replacement');
        await workspace.runOk(['up', ...inOrder]);
        await workspace.runOk(['refresh', ...inOrder, '--clear-pending-creates']);

        await write('3');
        await killDuring(scenario, 'b', 'update', { slowMs: { 'b.update': longMs } });
        await workspace.runOk(['cancel', '--yes']);
        await scenario.keepInOrder('killed during an update');
        await workspace.runOk(['up', ...inOrder]);
        await scenario.keepInOrder('up after the update');

        await workspace.writeProgram(thingProgram({ project, things: { a: { value: '3' } } }));
        await killDuring(scenario, 'c', 'delete', { slowAfterMs: { 'c.delete': longMs } });
        await workspace.runOk(['cancel', '--yes']);
        expect(pendingOperations(await workspace.exportState())).toEqual(['deleting c']);
        await scenario.keepInOrder('killed during a delete');
        await workspace.runOk(['up', ...inOrder]);
      });
    },
    scenarioTimeoutMs,
  );

  for (const [how, env] of [
    ['whole documents', { PULUMI_DISABLE_JOURNALING: 'true' }],
    ['journals in batches of one', { PULUMI_JOURNALING_BATCH_SIZE: '1' }],
  ] as const) {
    test.concurrent(
      `leaves its pending operations when it sends ${how}`,
      async () => {
        await expectSameAsFileBackend(
          await server(),
          async (scenario) => {
            const { workspace, project } = scenario;
            const things = { a: { value: '1' }, b: { value: reference('a', 'value') } };
            await workspace.writeProgram(thingProgram({ project, things }));
            await killDuring(scenario, 'b', 'create', { slowMs: { 'b.create': longMs } });
            await workspace.runOk(['cancel', '--yes']);
            expect(pendingOperations(await workspace.exportState())).toEqual(['creating b']);
            await scenario.keepInOrder('killed');
            await workspace.runOk(['up', ...inOrder]);
            await workspace.runOk(['refresh', ...inOrder, '--clear-pending-creates']);
          },
          { env },
        );
      },
      scenarioTimeoutMs,
    );
  }

  test.concurrent(
    'finds that its writes are refused once another user has cancelled it',
    async () => {
      await using scenario = await Scenario.create(await server());
      const { workspace, project } = scenario;
      const things = {
        a: { value: '1' },
        b: { value: reference('a', 'value') },
        c: { value: reference('b', 'value') },
      };
      await workspace.writeProgram(thingProgram({ project, things }));
      await workspace.cloud.control({ slowMs: { 'b.create': 4_000 } });
      const cli = await workspace.spawn(['up', ...unattended]);
      await workspace.cloud.waitStarted('b', 'create', 60_000);
      await workspace.runOk(['cancel', '--yes']);
      const before = await workspace.exportState();
      const ended = await cli.done;
      expect(outputOf(ended)).toContain('[403]');
      expect(ended.exitCode).not.toBe(0);
      expect(await workspace.exportState()).toEqual(before);
      expect(pendingOperations(before)).toEqual(['creating b']);
      await workspace.cloud.control({});
      await workspace.runOk(['up', ...unattended]);
      await workspace.runOk(['refresh', ...unattended, '--clear-pending-creates']);
      await expectNothingToDo(workspace);
    },
    scenarioTimeoutMs,
  );

  test.concurrent(
    'frees the stack by itself when it is interrupted in good order',
    async () => {
      await expectSameAsFileBackend(await server(), async (scenario) => {
        const { workspace, project } = scenario;
        const things = {
          a: { value: '1' },
          b: { value: reference('a', 'value') },
          c: { value: reference('b', 'value') },
        };
        await workspace.writeProgram(thingProgram({ project, things }));
        await workspace.cloud.control({ slowMs: { 'b.create': 2_000 } });
        const cli = await workspace.spawn(['up', ...unattended]);
        await workspace.cloud.waitStarted('b', 'create', 60_000);
        cli.interrupt();
        expect((await cli.done).exitCode).not.toBe(0);
        await scenario.keepInOrder('interrupted');
        await workspace.runOk(['up', ...inOrder]);
      });
    },
    scenarioTimeoutMs,
  );

  test.concurrent(
    'during a preview blocks nobody',
    async () => {
      await using scenario = await Scenario.create(await server());
      const { workspace, project } = scenario;
      await workspace.writeProgram(thingProgram({ project, things: { a: { value: '1' } } }));
      await workspace.cloud.control({ slowMs: { '*.read': longMs } });
      await workspace.runOk(['up', ...unattended]);
      await workspace.cloud.clearStarted();
      const cli = await workspace.spawn(['preview', '--refresh', '--non-interactive']);
      await workspace.cloud.waitStarted('a', 'read', 60_000);
      await workspace.runOk(['up', ...unattended]);
      await cli.killAll();
      await workspace.runOk(['up', ...unattended]);
    },
    scenarioTimeoutMs,
  );
});
