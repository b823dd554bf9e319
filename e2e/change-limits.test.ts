import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';

import { callApiOk } from '../testkit/api-call.ts';
import { expectFailure, outputOf, Scenario, unattended } from '../testkit/scenario.ts';
import { type ThingInputs, thingProgram } from '../testkit/stash-program.ts';
import { fileServer, scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { until } from '../testkit/until.ts';

const thingType = 'holdfast:index:Thing';

const numbered = (count: number): { [name: string]: ThingInputs } =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`t${at}`, { value: `${at}` }]));

/** The names of the things in the state, and of the existing things; they must be the same. */
async function thingsOf({ workspace }: Scenario): Promise<string[]> {
  const { deployment } = await workspace.exportState();
  expect(deployment.pending_operations ?? []).toEqual([]);
  const inState = (deployment.resources ?? [])
    .filter(({ type, delete: isDeleted }) => type === thingType && isDeleted !== true)
    .map(({ urn }) => String(urn).split('::').at(-1) as string);
  const existing = [...(await workspace.cloud.objects()).values()].map(({ name }) => name);
  expect(inState.sort()).toEqual(existing.sort());
  return existing;
}

/** Makes the program's directory a repository. Returns what commits a program with these things. */
async function repositoryOf({ project, workspace }: Scenario) {
  const git = (...args: string[]) =>
    promisify(execFile)('git', ['-c', 'user.name=e2e', '-c', 'user.email=e2e@example.com', ...args], {
      cwd: workspace.programDir,
    });
  await git('init', '-q');
  return async (things: { [name: string]: ThingInputs }): Promise<void> => {
    await workspace.writeProgram(thingProgram({ project, things }));
    await git('add', '.');
    await git('commit', '-q', '-m', 'change');
  };
}

await suite('rules of updates', {}, () => {
  const server = fileServer();

  test.concurrent(
    'an update that is drained in the middle keeps all that exists, and the next one goes on',
    async () => {
      const holdfast = await server();
      await using scenario = await Scenario.create(holdfast);
      const { project, workspace } = scenario;
      const { cloud } = workspace;
      const things = numbered(200);
      await workspace.writeProgram(thingProgram({ project, things }));
      await cloud.control({ slowAfterMs: { '*': 300 } });
      const run = await workspace.spawn(['up', ...unattended, '--parallel', '16']);
      await until(
        async () => (await cloud.log()).filter(({ phase }) => phase === 'done').length >= 30,
        'some things are created',
        { timeoutMs: 240_000, everyMs: 100 },
      );
      const stackPath = `stacks/${holdfast.organization}/${project}/dev`;
      const { activeUpdate } = await callApiOk(holdfast, 'GET', stackPath);
      await callApiOk(holdfast, 'POST', `${stackPath}/update/${activeUpdate}/drain`, { reason: 'shift ends' });
      const ended = await run.done;
      expect(ended.exitCode).not.toBe(0);
      expect(outputOf(ended)).toContain('drains this update (shift ends)');
      const log = await cloud.log();
      expect(log.filter(({ phase }) => phase === 'start')).toHaveLength(
        log.filter(({ phase }) => phase === 'done').length,
      );
      const created = await thingsOf(scenario);
      expect(created.length).toBeGreaterThanOrEqual(30);
      expect(created.length).toBeLessThan(200);

      await cloud.control({});
      await workspace.runOk(['up', ...unattended, '--parallel', '16']);
      expect(await thingsOf(scenario)).toHaveLength(200);
      const creations = (await cloud.log()).filter(({ op, phase }) => op === 'create' && phase === 'start');
      expect(creations).toHaveLength(200);
    },
    scenarioTimeoutMs,
  );

  test.concurrent(
    'deletes and replacements beyond the rules reach no provider until the commit is approved',
    async () => {
      const holdfast = await server();
      await using scenario = await Scenario.create(holdfast);
      const { project, workspace } = scenario;
      const { cloud } = workspace;
      const commit = await repositoryOf(scenario);
      const rules = `orgs/${holdfast.organization}/update-rules`;
      const stackPath = `stacks/${holdfast.organization}/${project}/dev`;
      await callApiOk(holdfast, 'POST', rules, { kind: 'change-limit', project, settings: { changes: 2 } });
      const up = ['up', ...unattended];
      await commit(numbered(8));
      await workspace.runOk(up);

      // Two of the five deletes may begin; the rest is not reached.
      const changed = { ...numbered(3), extra: { value: 'x' } };
      await commit(changed);
      await expectFailure(workspace, [...up, '--parallel', '1'], 'deletes or replaces at most 2');
      const left = await thingsOf(scenario);
      expect(left.length).toBeGreaterThanOrEqual(6);
      expect(left).toEqual(expect.arrayContaining(['t0', 't1', 't2']));
      const deletes = async () => (await cloud.log()).filter(({ op, phase }) => op === 'delete' && phase === 'start');
      expect((await deletes()).length).toBeLessThanOrEqual(2);

      const { approvals } = await callApiOk(holdfast, 'GET', `${stackPath}/approvals`);
      expect(approvals).toMatchObject([{ kind: 'update', valid: false }]);
      const asked = `${stackPath}/approvals/${approvals[0].id}`;
      await expect(callApiOk(holdfast, 'POST', asked, { reason: 'mine' })).rejects.toThrow(
        'Another user has to approve',
      );
      await callApiOk({ ...holdfast, token: holdfast.reviewerToken as string }, 'POST', asked, { reason: 'reviewed' });
      await workspace.runOk(up);
      expect(await thingsOf(scenario)).toEqual(Object.keys(changed).sort());

      // A type that nobody replaces; creates and updates go on.
      await callApiOk(holdfast, 'POST', rules, {
        kind: 'protected-types',
        project,
        settings: { types: ['holdfast:*'] },
      });
      const before = await cloud.log();
      await commit({ ...changed, t0: { value: '0', replaceOn: 'new' } });
      const output = await expectFailure(workspace, up, /\[403\] No update of project/);
      expect(output).toContain(`replaces ${thingType} "t0"`);
      expect((await cloud.log()).slice(before.length).filter(({ op }) => op !== 'read')).toEqual([]);
      expect(await thingsOf(scenario)).toEqual(Object.keys(changed).sort());
      await commit({ ...changed, t1: { value: 'updated' }, another: { value: 'y' } });
      await workspace.runOk(up);
      await expectFailure(
        workspace,
        ['destroy', ...unattended],
        'deletes or replaces a resource of this type without approval',
      );
      expect(await thingsOf(scenario)).toEqual([...Object.keys(changed), 'another'].sort());
    },
    scenarioTimeoutMs,
  );

  test.concurrent(
    'an update needs a preview of its commit and version, and does no more than that has said',
    async () => {
      const holdfast = await server();
      await using scenario = await Scenario.create(holdfast);
      const { project, workspace } = scenario;
      const commit = await repositoryOf(scenario);
      const setRule = (settings: object) =>
        callApiOk(holdfast, 'POST', `orgs/${holdfast.organization}/update-rules`, {
          kind: 'require-preview',
          project,
          settings,
        });
      const preview = ['preview', '--non-interactive'];
      const up = ['up', ...unattended];
      await setRule({ mode: 'refuse' });
      await commit(numbered(3));
      await expectFailure(workspace, up, /\[403\] Updates of project .* and there is none of commit/);
      await workspace.runOk(preview);
      await workspace.runOk(up);
      expect(await thingsOf(scenario)).toEqual(['t0', 't1', 't2']);

      // The same commit, but told to replace what the preview has left alone.
      await commit(numbered(2));
      await workspace.runOk(preview);
      const urn = `urn:pulumi:dev::${project}::${thingType}::t0`;
      const refused = await expectFailure(workspace, [...up, '--replace', urn], 'more than its preview announced');
      expect(refused).toContain(`replaces ${thingType} "t0"`);
      const replaced = (await workspace.cloud.log()).filter(({ op, phase }) => op === 'create' && phase === 'start');
      expect(replaced).toHaveLength(3);
      await expectFailure(workspace, up, 'and the stack is at');
      await workspace.runOk(preview);
      await workspace.runOk(up);
      expect(await thingsOf(scenario)).toEqual(['t0', 't1']);

      // The preview that it begins with.
      await commit(numbered(1));
      await workspace.runOk(['up', '--yes', '--non-interactive']);
      expect(await thingsOf(scenario)).toEqual(['t0']);
      await setRule({ mode: 'warn' });
      await commit(numbered(2));
      expect(outputOf(await workspace.runOk(up))).toContain('need a preview of the same commit');
    },
    scenarioTimeoutMs,
  );
});
