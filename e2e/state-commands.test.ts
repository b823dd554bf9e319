import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';

import { callApiOk } from '../testkit/api-call.ts';
import { type ExportedState, resourcesOfType, type StateResource } from '../testkit/pulumi-state.ts';
import {
  expectFailure,
  expectNothingToDo,
  expectSameAsFileBackend,
  inOrder,
  outputOf,
  Scenario,
  unattended,
} from '../testkit/scenario.ts';
import { reference, secret, type ThingInputs, thingProgram } from '../testkit/stash-program.ts';
import { fileServer, scenarioTimeoutMs, suite } from '../testkit/suite.ts';

function thingNames(state: ExportedState): (string | undefined)[] {
  return resourcesOfType(state, 'holdfast:index:Thing').map(({ urn }) => urn.split('::').pop());
}

await suite('commands for state', {}, () => {
  const server = fileServer();

  test.concurrent(
    'protect, taint, rename, delete and repair change the state as they do on the file backend',
    async () => {
      await expectSameAsFileBackend(await server(), async (scenario) => {
        const { workspace, project } = scenario;
        const things = {
          a: { value: '1', secretValue: secret('hush') },
          b: { value: reference('a', 'value') },
          c: { value: reference('b', 'value') },
        };
        await workspace.writeProgram(thingProgram({ project, things }));
        await workspace.runOk(['up', ...unattended]);
        const state = (command: string, ...args: string[]): Promise<unknown> =>
          workspace.runOk(['state', command, ...args, '--yes']);

        await state('protect', scenario.thing('a'));
        await state('protect', '--all');
        await scenario.keepInOrder('protected');
        await expectFailure(workspace, ['state', 'delete', scenario.thing('c'), '--yes'], 'protected');
        await state('unprotect', '--all');
        await state('taint', scenario.thing('c'));
        await state('taint', scenario.thing('b'));
        await state('untaint', scenario.thing('b'));
        await scenario.keepInOrder('tainted');
        await workspace.runOk(['up', ...inOrder]);
        await scenario.keepInOrder('what was tainted is replaced');

        await state('rename', scenario.thing('c'), 'renamed');
        const { c, ...rest } = things;
        await workspace.writeProgram(thingProgram({ project, things: { ...rest, renamed: c } }));
        await workspace.runOk(['up', ...inOrder, '--expect-no-changes']);
        await expectFailure(workspace, ['state', 'delete', scenario.thing('a'), '--yes'], 'depend');
        await state('delete', scenario.thing('renamed'));
        await workspace.runOk(['up', ...inOrder]);
        await scenario.keepInOrder('what was deleted is made again');

        const broken = await workspace.exportState();
        broken.deployment.resources?.reverse();
        const file = join(workspace.dir, 'broken.json');
        await writeFile(file, JSON.stringify(broken));
        await expectFailure(workspace, ['stack', 'import', '--file', file], 'state file contains errors');
        await workspace.runOk(['stack', 'import', '--file', file, '--force']);
        await expectFailure(workspace, ['preview', '--non-interactive'], 'integrity');
        await state('repair');
        await state('delete', scenario.thing('b'), '--target-dependents');
        await scenario.keepInOrder('repaired');
        await workspace.runOk(['up', ...inOrder]);
      });
    },
    scenarioTimeoutMs,
  );

  test.concurrent(
    'an update continues from a state that was edited by hand',
    async () => {
      await expectSameAsFileBackend(await server(), async (scenario) => {
        const { workspace, project } = scenario;
        const chain = (value: string): { [name: string]: ThingInputs } => ({
          a: { value, secretValue: secret('hush') },
          b: { value: reference('a', 'value'), replaceOn: reference('a', 'value') },
          c: { value: reference('b', 'value') },
          d: { value: reference('c', 'value') },
        });
        const up = async (things: { [name: string]: ThingInputs }, label: string): Promise<void> => {
          await workspace.writeProgram(thingProgram({ project, things }));
          await workspace.runOk(['up', ...inOrder]);
          await scenario.keepInOrder(label);
        };
        await up(chain('1'), 'created');

        // Positions in the journal refer to the state that the update starts from.
        await workspace.runOk(['state', 'delete', scenario.thing('d'), '--yes']);
        await workspace.runOk(['state', 'protect', scenario.thing('b'), '--yes']);
        const edited = await workspace.exportState();
        for (const { urn, inputs, outputs } of resourcesOfType(edited, 'holdfast:index:Thing')) {
          if (urn !== scenario.thing('a') || !inputs || !outputs) continue;
          [inputs['value'], outputs['value']] = ['by hand', 'by hand'];
        }
        const resources = edited.deployment.resources ?? [];
        // One that exists only in the state, before the others.
        const at = resources.findIndex(({ urn }) => urn === scenario.thing('a'));
        const template = resources[at] as StateResource;
        resources.splice(at, 0, { ...template, urn: scenario.thing('stray'), id: 'stray-1' });
        const file = join(workspace.dir, 'edited.json');
        await writeFile(file, JSON.stringify(edited));
        await workspace.runOk(['stack', 'import', '--file', file]);
        await scenario.keepInOrder('edited');
        await workspace.runOk(['state', 'unprotect', scenario.thing('b'), '--yes']);
        await workspace.runOk(['state', 'rename', scenario.thing('c'), 'renamed', '--yes']);
        const { c, d, ...rest } = chain('2');
        const after = { ...rest, renamed: c as ThingInputs, e: { value: reference('renamed', 'value') } };
        await up(after, 'what was edited is changed, what is gone is made again, the stray is deleted');
        const objects = [...(await workspace.cloud.objects()).values()];
        expect(objects.map(({ name }) => name).sort()).toEqual(['a', 'b', 'c', 'd', 'e']);
      });
    },
    scenarioTimeoutMs,
  );

  test.concurrent(
    'resources move to another stack with their secrets',
    async () => {
      await using scenario = await Scenario.create(await server());
      const { workspace, project } = scenario;
      const a = { value: '1', secretValue: secret('hush') };
      await workspace.writeProgram(thingProgram({ project, things: { a, b: { value: '2' } } }));
      await workspace.runOk(['up', ...unattended]);
      await workspace.runOk(['stack', 'init', scenario.stackName('other'), '--no-select']);
      const move = ['state', 'move', '--source', scenario.stackName('dev'), '--dest', scenario.stackName('other')];
      await workspace.runOk([...move, scenario.thing('a'), '--yes']);
      expect(thingNames(await workspace.exportState())).toEqual(['b']);
      const moved = await workspace.exportState({ stack: 'other', showSecrets: true });
      expect(thingNames(moved)).toEqual(['a']);
      expect(JSON.stringify(moved)).toContain('hush');
      await workspace.writeProgram(thingProgram({ project, things: { b: { value: '2' } } }));
      await expectNothingToDo(workspace);
      await workspace.writeProgram(thingProgram({ project, things: { a } }));
      await workspace.runOk(['up', ...unattended, '--stack', 'other']);
      expect([...(await workspace.cloud.objects()).keys()]).toEqual(['a-1', 'b-1']);
      await expectNothingToDo(workspace, 'other');
    },
    scenarioTimeoutMs,
  );

  test.concurrent(
    'one stack imports what another exports, and every version can be restored',
    async () => {
      await using scenario = await Scenario.create(await server());
      const { workspace, project } = scenario;
      const write = (value: string): Promise<void> =>
        workspace.writeProgram(
          thingProgram({
            project,
            things: { a: { value, secretValue: secret('hush') }, b: { value: reference('a', 'value') } },
            outputs: { echo: reference('a', 'secretEcho') },
          }),
        );
      for (const value of ['1', '2', '3']) {
        await write(value);
        await workspace.runOk(['up', ...unattended, '--message', `to ${value}`]);
      }
      await workspace.cloud.control({ failUpdate: ['b'] });
      await write('4');
      await expectFailure(workspace, ['up', ...unattended, '--message', 'to 4'], 'told to fail');
      await workspace.cloud.control({});
      const version = async (at: number): Promise<unknown[]> => {
        const { stdout } = await workspace.runOk(['stack', 'export', '--version', String(at)]);
        return resourcesOfType(JSON.parse(stdout) as ExportedState, 'holdfast:index:Thing').map(
          ({ inputs }) => inputs?.['value'],
        );
      };
      expect(await Promise.all([1, 2, 3, 4].map(version))).toEqual([
        ['1', '1'],
        ['2', '2'],
        ['3', '3'],
        ['4', '3'],
      ]);
      await expectFailure(workspace, ['stack', 'export', '--version', '5'], /404|not found|no version/);
      const history = JSON.parse((await workspace.runOk(['stack', 'history', '--output', 'json'])).stdout);
      expect(history).toMatchObject([
        { version: 4, kind: 'update', result: 'failed', message: 'to 4' },
        { version: 3, kind: 'update', result: 'succeeded', message: 'to 3', resourceChanges: { update: 2, same: 1 } },
        { version: 2, result: 'succeeded' },
        { version: 1, result: 'succeeded', resourceChanges: { create: 3 } },
      ]);
      const page = ['stack', 'history', '--page-size', '2', '--page', '2', '--output', 'json'];
      expect(JSON.parse((await workspace.runOk(page)).stdout)).toMatchObject([{ version: 2 }, { version: 1 }]);

      // Back to version 3, by import, as an operator would.
      const old = join(workspace.dir, 'old.json');
      await workspace.runOk(['stack', 'export', '--version', '3', '--file', old]);
      await workspace.runOk(['stack', 'import', '--file', old]);
      expect(await version(5)).toEqual(['3', '3']);
      await workspace.runOk(['up', ...unattended]);

      await workspace.runOk(['stack', 'init', scenario.stackName('copy'), '--no-select']);
      const plain = (await workspace.runOk(['stack', 'export', '--show-secrets'])).stdout;
      const copy = join(workspace.dir, 'copy.json');
      await writeFile(
        copy,
        plain.replaceAll('urn:pulumi:dev::', 'urn:pulumi:copy::').replaceAll(`${project}-dev`, `${project}-copy`),
      );
      await workspace.runOk(['stack', 'import', '--stack', 'copy', '--file', copy]);
      await expectNothingToDo(workspace, 'copy');
      expect(JSON.stringify(await workspace.exportState({ stack: 'copy' }))).not.toContain('hush');
      const echo = ['stack', 'output', 'echo', '--show-secrets', '--stack', 'copy'];
      expect((await workspace.runOk(echo)).stdout.trim()).toBe('hush');
      await expectFailure(workspace, ['stack', 'import', '--file', copy], /copy|dev/);
    },
    scenarioTimeoutMs,
  );

  test.concurrent(
    'the events of an update can be read again, completely and in order',
    async () => {
      const holdfast = await server();
      const { organization } = holdfast;
      await using scenario = await Scenario.create(await server());
      const { workspace, project } = scenario;
      const things = Object.fromEntries(Array.from({ length: 120 }, (_, at) => [`t${at}`, { value: `${at}` }]));
      await workspace.writeProgram(thingProgram({ project, things }));
      await workspace.runOk(['up', ...unattended, '--parallel', '64']);
      const { info } = await callApiOk(holdfast, 'GET', `stacks/${organization}/${project}/dev/updates/latest`);
      const events = ['stack', 'history', 'events', info.updateID];
      const printed = await workspace.runOk([...events, '--all', '--output', 'json']);
      const all = JSON.parse(printed.stdout) as { [payload: string]: { metadata?: { urn: string } } }[];
      expect(all[0]).toHaveProperty('preludeEvent');
      expect(all.at(-1)).toHaveProperty('summaryEvent');
      const urnsOf = (payload: string): (string | undefined)[] =>
        all.filter((event) => payload in event).map((event) => event[payload]?.metadata?.urn);
      expect(new Set(urnsOf('resOutputsEvent')).size).toBe(121);
      expect(urnsOf('resOutputsEvent')).toHaveLength(121);
      const place = (payload: string, urn?: string): number =>
        all.findIndex((event) => event[payload]?.metadata?.urn === urn);
      for (const urn of urnsOf('resOutputsEvent')) {
        expect(place('resourcePreEvent', urn)).toBeLessThan(place('resOutputsEvent', urn));
      }
      const summary = await workspace.runOk([...events, '--summary', '--output', 'json']);
      expect(JSON.parse(summary.stdout)).toMatchObject({ result: 'succeeded', summary: { create: 121 } });
      const one = await workspace.runOk([...events, '--all', '--urn', scenario.thing('t77'), '--output', 'json']);
      expect(JSON.parse(one.stdout)).toMatchObject([
        { resourcePreEvent: { metadata: { op: 'create', urn: scenario.thing('t77') } } },
        { resOutputsEvent: { metadata: { op: 'create', urn: scenario.thing('t77') } } },
      ]);
    },
    scenarioTimeoutMs,
  );

  test.concurrent(
    'unsupported policies and members are rejected with a clear message',
    async () => {
      await using scenario = await Scenario.create(await server());
      for (const command of [
        ['policy', 'ls'],
        ['policy', 'group', 'ls'],
        ['org', 'member', 'list'],
      ]) {
        const result = await scenario.workspace.run(command);
        expect(outputOf(result)).not.toMatch(/\[5\d\d\]|panic/);
      }
    },
    scenarioTimeoutMs,
  );
});
