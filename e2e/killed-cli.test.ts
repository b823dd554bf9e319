import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { type ExportedState, resourcesOfType } from '../testkit/pulumi-state.ts';
import {
  expectFailure,
  expectNothingToDo,
  expectSameAsFileBackend,
  inOrder,
  outputOf,
  Scenario,
  unattended,
} from '../testkit/scenario.ts';
import { chain, reference, thingProgram } from '../testkit/stash-program.ts';
import { fileServer, scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import type { CloudControl, CloudOperation } from '../testkit/test-cloud.ts';
import { until } from '../testkit/until.ts';

const longMs = 600_000;

/** Starts `up` and kills everything as soon as an operation has started, or has taken effect if the delay is after it. */
async function killDuring(scenario: Scenario, name: string, op: CloudOperation, control: CloudControl): Promise<void> {
  const { workspace } = scenario;
  await workspace.cloud.control(control);
  await workspace.cloud.clearStarted();
  const before = await workspace.cloud.objects();
  const cli = await workspace.spawn(['up', ...unattended]);
  await workspace.cloud.waitStarted(name, op, 120_000);
  // Another id would be given otherwise, and states would differ.
  if (control.slowAfterMs)
    await until(async () => {
      const now = await workspace.cloud.objects();
      const [from, to] = op === 'delete' ? [before, now] : [now, before];
      return [...from.values()].some((each) => each.name === name && !to.has(each.id));
    }, `${op} of ${name} has taken effect`);
  await cli.killAll();
  await workspace.cloud.control({});
}

function pendingOperations({ deployment }: ExportedState): string[] {
  return (deployment.pending_operations ?? []).map(({ type, resource }) => `${type} ${resource.urn.split('::').pop()}`);
}

await suite('a killed CLI', {}, () => {
  const server = fileServer();

  test.concurrent(
    'leaves its work and its pending operations, and blocks the stack until it is cancelled',
    async () => {
      await expectSameAsFileBackend(await server(), async (scenario) => {
        const { workspace, project } = scenario;
        const c = { value: reference('b', 'value'), replaceOn: reference('b', 'value'), deleteBeforeReplace: true };
        const write = (value: string): Promise<void> =>
          workspace.writeProgram(thingProgram({ project, things: { ...chain(value), c } }));

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

        // The object is updated in the cloud, and the engine does not learn of it.
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
    'during 150 resources loses none that were created, and the next runs create the rest once',
    async () => {
      await using scenario = await Scenario.create(await server());
      const { workspace, project } = scenario;
      const { cloud } = workspace;
      const names = Array.from({ length: 150 }, (_, at) => `t${at}`);
      const things = Object.fromEntries(names.map((name) => [name, { value: name }]));
      await workspace.writeProgram(thingProgram({ project, things }));
      // The engine does not learn of these: one is created, the others are not.
      const [made, notMade] = ['t90', ['t85', 't95']];
      await cloud.control({
        slowAfterMs: { [`${made}.create`]: longMs },
        slowMs: Object.fromEntries(notMade.map((name) => [`${name}.create`, longMs])),
      });
      const cli = await workspace.spawn(['up', ...unattended, '--parallel', '32']);
      await Promise.all([made, ...notMade].map((name) => cloud.waitStarted(name, 'create', 600_000)));
      await until(async () => (await cloud.objects()).has(`${made}-1`), 'it is made', { timeoutMs: 120_000 });
      await cli.killAll();
      await cloud.control({});
      await workspace.runOk(['cancel', '--yes']);

      const inCloud = new Map([...(await cloud.objects()).values()].map(({ name, id }) => [name, id]));
      expect(inCloud.size).toBeGreaterThan(30);
      expect(inCloud.size).toBeLessThan(150);
      const state = await workspace.exportState();
      const inState = new Map(
        resourcesOfType(state, 'holdfast:index:Thing').map(({ urn, id }) => [urn.split('::').pop() as string, id]),
      );
      const pending = pendingOperations(state).map((operation) => operation.replace('creating ', ''));
      expect(pending).toEqual(expect.arrayContaining([made, ...notMade]));
      const unknown = [...inCloud].filter(([name, id]) => inState.get(name) !== id && !pending.includes(name));
      expect(unknown).toEqual([]);
      expect([...inState].filter(([name, id]) => inCloud.get(name) !== id)).toEqual([]);

      const reminded = await workspace.runOk(['up', ...unattended, '--target', scenario.thing('t0')]);
      expect(outputOf(reminded)).toContain(`${pending.length} pending operations`);
      // Created ones are imported, the rest is created.
      await workspace.runOk(['refresh', ...unattended, '--clear-pending-creates']);
      const found = pending.filter((name) => inCloud.has(name));
      const resources = found.map((name) => ({ type: 'holdfast:index:Thing', name, id: inCloud.get(name) }));
      const file = join(workspace.dir, 'found.json');
      await writeFile(file, JSON.stringify({ resources }));
      const imported = ['import', '--file', file, '--protect=false', '--generate-code=false'];
      await workspace.runOk([...imported, ...unattended]);
      await workspace.runOk(['up', ...unattended, '--parallel', '32']);
      const after = await workspace.exportState();
      expect(pendingOperations(after)).toEqual([]);
      const objects = [...(await cloud.objects()).values()];
      expect(objects.map(({ name }) => name).sort()).toEqual([...names].sort());
      expect(
        resourcesOfType(after, 'holdfast:index:Thing')
          .map(({ id }) => id)
          .sort(),
      ).toEqual(objects.map(({ id }) => id).sort());
      await expectNothingToDo(workspace);
    },
    scenarioTimeoutMs,
  );

  test.concurrent(
    'gets its writes rejected once another user has cancelled it',
    async () => {
      await using scenario = await Scenario.create(await server());
      const { workspace, project } = scenario;
      const things = chain('1');
      await workspace.writeProgram(thingProgram({ project, things }));
      await workspace.cloud.control({ slowMs: { 'b.create': longMs } });
      const cli = await workspace.spawn(['up', ...unattended]);
      await workspace.cloud.waitStarted('b', 'create', 120_000);
      // It stays in the middle of the step for as long as the other one needs.
      cli.pause();
      await workspace.runOk(['cancel', '--yes']);
      const before = await workspace.exportState();
      await workspace.cloud.control({});
      cli.resume();
      const ended = await cli.done;
      expect(outputOf(ended)).toContain('[403]');
      expect(ended.exitCode).not.toBe(0);
      expect(await workspace.exportState()).toEqual(before);
      expect(pendingOperations(before)).toEqual(['creating b']);
      await workspace.runOk(['up', ...unattended]);
      await workspace.runOk(['refresh', ...unattended, '--clear-pending-creates']);
      await expectNothingToDo(workspace);
    },
    scenarioTimeoutMs,
  );

  test.concurrent(
    'frees the stack itself when it is interrupted gracefully',
    async () => {
      await expectSameAsFileBackend(await server(), async (scenario) => {
        const { workspace, project } = scenario;
        const things = chain('1');
        await workspace.writeProgram(thingProgram({ project, things }));
        await workspace.cloud.control({ slowMs: { 'b.create': longMs } });
        const cli = await workspace.spawn(['up', ...unattended]);
        await workspace.cloud.waitStarted('b', 'create', 120_000);
        cli.interrupt();
        await until(() => /C received; cancelling/.test(cli.stdout + cli.stderr), 'it ends after this step');
        await workspace.cloud.control({});
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
      await workspace.cloud.waitStarted('a', 'read', 120_000);
      await workspace.runOk(['up', ...unattended]);
      await cli.killAll();
      await workspace.runOk(['up', ...unattended]);
    },
    scenarioTimeoutMs,
  );
});
