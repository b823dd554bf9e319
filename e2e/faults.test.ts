import { expect, test } from '@jest/globals';

import { expectFailure, expectSameAsFileBackend, inOrder, type Scenario, unattended } from '../testkit/scenario.ts';
import { chain, reference, type ThingInputs, thingProgram } from '../testkit/stash-program.ts';
import { fileServer, scenarioTimeoutMs, suite } from '../testkit/suite.ts';

async function upWith(scenario: Scenario, things: { [name: string]: ThingInputs }): Promise<void> {
  await scenario.workspace.writeProgram(thingProgram({ project: scenario.project, things }));
  await scenario.workspace.runOk(['up', ...inOrder]);
}

async function failUpWith(
  scenario: Scenario,
  things: { [name: string]: ThingInputs },
  text: string,
  flags: readonly string[] = [],
): Promise<void> {
  await scenario.workspace.writeProgram(thingProgram({ project: scenario.project, things }));
  await expectFailure(scenario.workspace, ['up', ...inOrder, ...flags], text);
}

await suite('failing operations', {}, () => {
  const server = fileServer();

  test.concurrent(
    'a failed create, update or delete leaves the same state as the file backend, and the next run repairs it',
    async () => {
      await expectSameAsFileBackend(await server(), async (scenario) => {
        const { workspace } = scenario;
        const { cloud } = workspace;
        const things = chain('1');
        await cloud.control({ failCreate: ['b'] });
        await failUpWith(scenario, things, 'create of b told to fail');
        await scenario.keep('create failed');
        await cloud.control({});
        await upWith(scenario, things);
        await scenario.keep('create repaired');

        const changed = { ...things, a: { value: '2' } };
        await cloud.control({ failUpdate: ['b'] });
        await failUpWith(scenario, changed, 'update of b told to fail');
        await scenario.keep('update failed');
        await cloud.control({});
        await upWith(scenario, changed);

        await cloud.control({ failDelete: ['b'] });
        await failUpWith(scenario, { a: changed.a }, 'delete of b told to fail');
        await scenario.keep('delete failed');
        await cloud.control({});
        await upWith(scenario, { a: changed.a });
        await scenario.keep('delete repeated');

        const many = Object.fromEntries(Array.from({ length: 12 }, (_, at) => [`m${at}`, { value: `${at}` }]));
        await cloud.control({ failCreate: ['m3', 'm7'], partialCreate: ['m9'] });
        await failUpWith(scenario, many, 'create of m7 told to fail', ['--continue-on-error']);
        await scenario.keep('some of many failed');
        await cloud.control({});
        await upWith(scenario, many);
        await cloud.control({ failDelete: ['m5'] });
        await expectFailure(workspace, ['destroy', ...inOrder, '--continue-on-error'], 'delete of m5 told to fail');
        await scenario.keep('destroy failed');
        await cloud.control({});
        await workspace.runOk(['destroy', ...inOrder]);
        await scenario.keep('destroyed');
        await upWith(scenario, things);
      });
    },
    scenarioTimeoutMs,
  );

  test.concurrent(
    'interrupted replacements are recorded and completed by the next run',
    async () => {
      await expectSameAsFileBackend(await server(), async (scenario) => {
        const { cloud } = scenario.workspace;
        // The failing step must be the only change: independent steps run in any order.
        const things = (a: string, c: string): { [name: string]: ThingInputs } => ({
          a: { value: '1', replaceOn: a },
          b: { value: reference('a', 'value') },
          c: { value: '3', replaceOn: c, deleteBeforeReplace: true },
          d: { value: reference('c', 'value'), replaceOn: reference('c', 'replaceOn') },
        });
        await upWith(scenario, things('one', 'one'));
        await upWith(scenario, things('two', 'two'));
        await scenario.keep('replaced');

        await cloud.control({ failDelete: ['a'] });
        await failUpWith(scenario, things('three', 'two'), 'delete of a told to fail');
        await scenario.keep('the old one could not be deleted');
        await failUpWith(scenario, things('four', 'two'), 'delete of a told to fail');
        await scenario.keep('two old ones wait');
        await cloud.control({});
        await upWith(scenario, things('four', 'two'));
        await scenario.keep('the old ones are gone');
        expect([...(await cloud.objects()).keys()].filter((id) => id.startsWith('a-'))).toHaveLength(1);

        await cloud.control({ failCreate: ['c'] });
        await failUpWith(scenario, things('four', 'five'), 'create of c told to fail');
        await scenario.keep('deleted, not yet created again');
        await cloud.control({});
        await upWith(scenario, things('four', 'five'));
        await scenario.keep('created again');

        await cloud.control({ failCreate: ['a.create'] });
        await failUpWith(scenario, things('six', 'five'), 'create of a told to fail');
        await scenario.keep('the new one could not be created');
        await cloud.control({});
        await scenario.workspace.runOk([
          'up',
          ...inOrder,
          '--target-replace',
          scenario.thing('a'),
          '--target-dependents',
        ]);
        await scenario.keep('one target replaced');
        await upWith(scenario, things('six', 'five'));
      });
    },
    scenarioTimeoutMs,
  );

  test.concurrent(
    'a partially created resource is kept with its errors and repaired',
    async () => {
      await expectSameAsFileBackend(await server(), async (scenario) => {
        const { workspace, project } = scenario;
        const things = { a: { value: '1' }, b: { value: reference('a', 'value') } };
        await workspace.cloud.control({ partialCreate: ['a'] });
        await failUpWith(scenario, things, 'initialisation told to fail');
        await scenario.keep('half created');
        await workspace.cloud.control({});
        await upWith(scenario, things);
        await scenario.keep('created after all');

        await workspace.cloud.control({ failRead: ['b'] });
        await expectFailure(workspace, ['refresh', ...inOrder], 'read of b told to fail');
        await scenario.keep('refresh failed');
        await workspace.cloud.control({});
        const protectedThings = thingProgram({ project, things, options: { b: { protect: true } } });
        await workspace.writeProgram(protectedThings);
        await workspace.runOk(['up', ...inOrder]);
        await expectFailure(workspace, ['destroy', ...unattended], 'protected');
        await scenario.keep('protected');
      });
    },
    scenarioTimeoutMs,
  );
});
