import { expect, test } from '@jest/globals';

import { writeHostProgram } from '../testkit/language-host/install.ts';
import { resourcesOfType } from '../testkit/pulumi-state.ts';
import {
  expectFailure,
  expectNothingToDo,
  expectSameAsFileBackend,
  inOrder,
  Scenario,
  unattended,
} from '../testkit/scenario.ts';
import { type PulumiProgram, reference, secret, stashProgram, thingProgram } from '../testkit/stash-program.ts';
import { fileServer, scenarioTimeoutMs, suite } from '../testkit/suite.ts';

/** Values that break programs which parse a state and write it again. */
const oddValues = [
  'plain',
  'ümläut 漢字 😀 \u2028 <script>&amp;</script> "quoted" back\\slash \n new line \u0000',
  9007199254740991,
  1e300,
  -0.1,
  true,
  [],
  {},
  [1, [2, [3, { deep: ['down', null] }]]],
  { __proto_: 1, constructor: 2, 'a.b[0]': 3, '': 4, ключ: 'значение' },
  secret('hidden ü 😀'),
  secret({ user: 'ada', list: [1, 'zwei', null] }),
  [secret('in a list'), 'beside it'],
  'x'.repeat(50_000),
];

await suite('programs', {}, () => {
  const server = fileServer();

  test.concurrent(
    'many stashes are created, changed and deleted',
    async () => {
      await expectSameAsFileBackend(await server(), async (scenario) => {
        const { workspace, project } = scenario;
        await workspace.writeProgram(stashProgram({ project, count: 40, chained: true }));
        await workspace.runOk(['up', ...unattended]);
        await scenario.keepInOrder('created');
        const inputOf = (at: number): string => (at % 3 === 0 ? `new ${at}` : `input of ${at}`);
        await workspace.writeProgram(stashProgram({ project, count: 30, chained: true, inputOf }));
        await workspace.runOk(['up', ...unattended]);
        await scenario.keepInOrder('changed');
        await workspace.writeProgram(stashProgram({ project, count: 60, inputOf }));
        await workspace.runOk(['up', ...unattended]);
      });
    },
    scenarioTimeoutMs,
  );

  test.concurrent(
    'values of every kind are returned unchanged',
    async () => {
      await expectSameAsFileBackend(await server(), async (scenario) => {
        const { workspace, project } = scenario;
        const program = stashProgram({ project, count: oddValues.length, inputOf: (at) => oddValues[at] ?? null });
        const outputs: PulumiProgram['outputs'] = { all: oddValues, token: secret('top secret') };
        await workspace.writeProgram({ ...program, outputs });
        await workspace.runOk(['up', ...inOrder]);
        await scenario.keep('created');
        const reversed = [...oddValues].reverse();
        const changed = stashProgram({ project, count: reversed.length, inputOf: (at) => reversed[at] ?? null });
        await workspace.writeProgram({ ...changed, outputs: { ...outputs, all: secret(oddValues) } });
        await workspace.runOk(['up', ...inOrder]);
        await scenario.keep('changed');
        const plain = await workspace.runOk(['stack', 'output', '--json']);
        expect(JSON.parse(plain.stdout)).toMatchObject({ token: '[secret]', all: '[secret]' });
        const shown = await workspace.runOk(['stack', 'output', 'token', '--show-secrets']);
        expect(shown.stdout.trim()).toBe('top secret');
      });
    },
    scenarioTimeoutMs,
  );

  test.concurrent(
    'targets, drift, refreshes and imports leave the same state as the file backend',
    async () => {
      await expectSameAsFileBackend(await server(), async (scenario) => {
        const { workspace, project } = scenario;
        const { cloud } = workspace;
        const things = {
          a: { value: 'one', secretValue: secret('hidden') },
          b: { value: reference('a', 'value'), replaceOn: 'x', secretValue: secret('hidden') },
          c: { value: reference('b', 'value'), secretValue: reference('b', 'secretEcho') },
          d: { value: 'alone' },
        };
        await workspace.writeProgram(thingProgram({ project, things }));
        await workspace.runOk(['up', ...inOrder]);
        await scenario.keep('created');

        const changed = {
          ...things,
          a: { ...things.a, value: 'two' },
          b: { ...things.b, replaceOn: 'y' },
          d: { value: 'later' },
        };
        await workspace.writeProgram(thingProgram({ project, things: changed }));
        await workspace.runOk(['up', ...inOrder, '--target', scenario.thing('a')]);
        await scenario.keep('one target updated');
        await workspace.runOk(['up', ...inOrder]);
        await scenario.keep('the rest updated');

        await cloud.edit('a-1', { value: 'drifted' });
        await cloud.remove('d-1');
        // Its dependents stay.
        await cloud.remove('b-2');
        await expectFailure(
          workspace,
          ['refresh', '--preview-only', '--expect-no-changes', '--non-interactive'],
          'no changes were expected',
        );
        await workspace.runOk(['refresh', ...inOrder]);
        await scenario.keep('drift taken in');
        await cloud.edit('c-1', { value: 'drifted too' });
        await workspace.runOk(['up', '--refresh', ...inOrder]);
        await scenario.keep('drift undone');

        // Somebody created a resource by hand.
        await workspace.runOk(['state', 'delete', scenario.thing('d'), '--yes']);
        const imported = ['import', 'holdfast:index:Thing', 'd', 'd-2', '--protect=false', '--generate-code=false'];
        await workspace.runOk([...imported, '--yes', '--non-interactive']);
        await scenario.keep('imported');
        await workspace.runOk(['up', ...inOrder]);
      });
    },
    scenarioTimeoutMs,
  );

  test.concurrent(
    'a program that migrates its state keeps its resources under other URNs',
    async () => {
      await expectSameAsFileBackend(await server(), async (scenario) => {
        const { workspace, project } = scenario;
        const [group, other] = [{ name: 'group' }, { name: 'other', value: '4' }];
        await writeHostProgram(workspace, project, [
          group,
          { name: 'a', parent: 'group', value: '1' },
          { name: 'b', parent: 'group', value: '2', dependsOn: ['a'] },
          { name: 'c', value: '3', dependsOn: ['b'] },
          other,
        ]);
        await workspace.runOk(['up', ...inOrder]);
        await writeHostProgram(workspace, project, [
          other,
          { ...group, renames: { a: 'new-a', b: 'new-b' } },
          { name: 'new-a', parent: 'group', value: '1' },
          { name: 'new-b', parent: 'group', value: '2 changed', dependsOn: ['new-a'] },
          { name: 'c', value: '3', dependsOn: ['new-b'] },
        ]);
        await workspace.runOk(['up', ...inOrder]);
        await scenario.keepInOrder('migrated');
        const things = resourcesOfType(await workspace.exportState(), 'holdfast:index:Thing');
        expect(things.map(({ urn, id }) => `${urn.split('::').at(-1)}: ${id}`).sort()).toEqual([
          ...['c: c-1', 'new-a: a-1', 'new-b: b-1', 'other: other-1'],
        ]);
        await workspace.runOk(['refresh', ...inOrder]);
      });
    },
    scenarioTimeoutMs,
  );

  test.concurrent(
    'destroy leaves an empty stack, and with --remove none',
    async () => {
      await using scenario = await Scenario.create(await server());
      const { workspace, project } = scenario;
      await workspace.writeProgram(
        thingProgram({ project, things: { a: { value: '1' }, b: { value: reference('a', 'value') } } }),
      );
      await workspace.runOk(['up', ...unattended]);
      await workspace.runOk(['destroy', ...unattended, '--target', scenario.thing('b')]);
      expect(resourcesOfType(await workspace.exportState(), 'holdfast:index:Thing').map(({ id }) => id)).toEqual([
        'a-1',
      ]);
      await workspace.runOk(['destroy', ...unattended]);
      expect((await workspace.exportState()).deployment.resources ?? []).toEqual([]);
      expect((await workspace.cloud.objects()).size).toBe(0);
      await workspace.runOk(['up', ...unattended]);
      await expectNothingToDo(workspace);
      await workspace.runOk(['destroy', ...unattended, '--remove']);
      await expectFailure(workspace, ['stack', 'select', scenario.stackName('dev')], 'no stack named');
    },
    scenarioTimeoutMs,
  );
});
