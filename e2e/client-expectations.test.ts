import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';

import { callApiOk } from '../testkit/api-call.ts';
import { writePolicyPack } from '../testkit/policy-pack.ts';
import { expectFailure, newProject, outputOf, Scenario, unattended } from '../testkit/scenario.ts';
import { thingProgram } from '../testkit/stash-program.ts';
import { fileServer, scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { until } from '../testkit/until.ts';

/** How the CLI shows responses other than plain success. */
await suite('expectations of the CLI', {}, () => {
  const server = fileServer();

  test.concurrent(
    'a stack without resources is removed without force, one with resources is not',
    async () => {
      await using scenario = await Scenario.create(await server());
      const { workspace, project } = scenario;
      await workspace.runOk(['up', ...unattended]);
      expect((await workspace.exportState()).deployment.resources).toMatchObject([{ type: 'pulumi:pulumi:Stack' }]);
      await workspace.writeProgram(thingProgram({ project, things: { a: { value: '1' } } }));
      await workspace.runOk(['up', ...unattended]);
      await expectFailure(workspace, ['stack', 'rm', '--yes'], 'still has resources; removal rejected');
      await workspace.writeProgram({ name: project, runtime: 'yaml', resources: {} });
      await workspace.runOk(['up', ...unattended]);
      await workspace.runOk(['stack', 'rm', '--yes']);
      await expectFailure(workspace, ['stack', 'export', '--stack', 'dev'], 'no stack named');
    },
    scenarioTimeoutMs,
  );

  test.concurrent(
    'a second update, and a cancel without an update, are rejected with a fitting message',
    async () => {
      await using scenario = await Scenario.create(await server());
      const { workspace, project } = scenario;
      const nothingToCancel = `[409] No update of stack '${scenario.stackName('dev')}' is in progress, so there is nothing to cancel`;
      const cancelNothing = async (): Promise<void> => {
        const { exitCode, ...output } = await workspace.run(['cancel', '--yes']);
        expect(exitCode).not.toBe(0);
        expect(outputOf(output)).toContain(nothingToCancel);
      };
      await cancelNothing();
      await workspace.writeProgram(thingProgram({ project, things: { a: { value: '1', slowMs: 600_000 } } }));
      const slow = await workspace.spawn(['up', ...unattended]);
      await until(() => slow.stdout.includes('creating'), 'the update is under way', { timeoutMs: 120_000 });
      const refused = outputOf(await workspace.run(['up', ...unattended]));
      expect(refused).toContain('[409] Conflict: Another update is currently in progress.');
      await workspace.runOk(['cancel', '--yes']);
      await slow.killAll();
      await cancelNothing();
    },
    scenarioTimeoutMs,
  );

  test.concurrent(
    'project ls shows projects beyond the two hundredth stack',
    async () => {
      const holdfast = await server();
      const { organization, workspace: makeWorkspace } = holdfast;
      await using workspace = await makeWorkspace();
      const prefix = newProject('listed');
      for (let index = 0; index < 260; index++) {
        await callApiOk(holdfast, 'POST', `stacks/${organization}/${prefix}-${index}`, { stackName: 'dev' });
      }
      const listed = JSON.parse((await workspace.runOk(['project', 'ls', '--json'])).stdout) as { name: string }[];
      const names = new Set(listed.map(({ name }) => name));
      for (let index = 0; index < 260; index++) expect(names).toContain(`${prefix}-${index}`);
    },
    scenarioTimeoutMs,
  );

  test.concurrent(
    'org search prints a resource of which it is not known when it was changed',
    async () => {
      const holdfast = await server();
      const { organization, workspace: makeWorkspace } = holdfast;
      await using workspace = await makeWorkspace();
      const project = newProject('searched');
      const urn = `urn:pulumi:dev::${project}::test:index:Box::${project}`;
      const state = {
        version: 3,
        deployment: { resources: [{ urn, custom: true, id: 'box', type: 'test:index:Box' }] },
      };
      // No update has written this state.
      await callApiOk(holdfast, 'POST', `stacks/${organization}/${project}`, { stackName: 'dev', state });
      const search = ['org', 'search', '--query', `name:${project}`, '--org', organization];
      await until(
        async () => (await workspace.runOk(search)).stdout.includes('Displaying 1 of 1'),
        'the resource is found',
        { timeoutMs: 120_000 },
      );
    },
    scenarioTimeoutMs,
  );

  test.concurrent(
    'stack history events accepts the version that the history prints',
    async () => {
      await using scenario = await Scenario.create(await server());
      const { workspace, project } = scenario;
      for (const value of ['1', '2']) {
        await workspace.writeProgram(thingProgram({ project, things: { [`thing${value}`]: { value } } }));
        await workspace.runOk(['up', ...unattended]);
      }
      const history = JSON.parse((await workspace.runOk(['stack', 'history', '--json'])).stdout) as {
        version: number;
      }[];
      expect(history.map(({ version }) => version)).toEqual([2, 1]);
      const events = async (version: string): Promise<string> =>
        (await workspace.runOk(['stack', 'history', 'events', version, '--all', '--output', 'json'])).stdout;
      expect(await events('1')).toMatch(/::thing1"/);
      expect(await events('1')).not.toMatch(/::thing2"/);
      expect(await events('2')).toMatch(/::thing2"/);
      await expectFailure(
        workspace,
        ['stack', 'history', 'events', '3'],
        /\[404\] There is no update "3" in this stack/,
      );
    },
    scenarioTimeoutMs,
  );

  test.concurrent(
    'stack history and config refresh work after an update of another client',
    async () => {
      await using scenario = await Scenario.create(await server());
      const { workspace, project } = scenario;
      const { organization, token, url } = await server();
      const call = async (path: string, authorization: string, body: object): Promise<Record<string, string>> => {
        const headers = { accept: 'application/vnd.service+8', authorization, 'content-type': 'application/json' };
        const at = `${url}/api/stacks/${organization}/${project}/dev/update${path}`;
        const response = await fetch(at, { method: 'POST', headers, body: JSON.stringify(body) });
        expect(response.ok).toBe(true);
        return response.status === 200 ? ((await response.json()) as Record<string, string>) : {};
      };
      const config = {
        region: 'eu',
        [`${project}:n`]: 1,
        [`${project}:a`]: { string: 'b', secret: false, object: false },
      };
      const environment = { n: 1, 'stack.environments': 'none' };
      const { updateID } = await call('', `token ${token}`, { config, metadata: { message: 'other', environment } });
      const started = await call(`/${updateID}`, `token ${token}`, {});
      await call(`/${updateID}/complete`, `update-token ${started['token']}`, { status: 'succeeded' });
      const history = JSON.parse((await workspace.runOk(['stack', 'history', '--json'])).stdout) as object[];
      expect(history).toMatchObject([{ message: 'other', config: { [`${project}:a`]: { value: 'b' } } }]);
      await workspace.runOk(['config', 'refresh', '--force']);
      expect((await workspace.runOk(['config', 'get', 'a'])).stdout.trim()).toBe('b');
    },
    scenarioTimeoutMs,
  );

  test.concurrent(
    'pulumi api lists operations and calls them by name',
    async () => {
      await using scenario = await Scenario.create(await server());
      const { workspace, project } = scenario;
      const api = async (...args: string[]) => {
        const { stdout } = await workspace.runOk(['api', ...args]);
        return stdout === '' ? null : (JSON.parse(stdout) as Record<string, unknown>);
      };
      const operations = (await api('list', '--output', 'json'))?.['operations'] as { operationId: string }[];
      expect(operations.map(({ operationId }) => operationId)).toEqual(
        expect.arrayContaining(['CreateStack', 'GetStack', 'ListUserStacks', 'ExportStack', 'ListStackUpdates']),
      );
      // Parameters of the path come from the selected stack.
      expect(await api('GetStack')).toMatchObject({ projectName: project, stackName: 'dev' });
      await api('UpdateStackTags', '--body', '{"made":"by-api"}');
      expect(await api('GetStack')).toMatchObject({ tags: { made: 'by-api' } });
      expect(await api('CreateStack', '-F', 'stackName=second')).toMatchObject({ stackName: 'second' });
      await expectFailure(workspace, ['api', 'GetStack', '-F', 'stackName=absent'], /"httpStatus":404.*not found/);
    },
    scenarioTimeoutMs,
  );

  test.concurrent(
    'a required policy pack is published, downloaded and enforced',
    async () => {
      const { organization } = await server();
      await using scenario = await Scenario.create(await server());
      const { workspace, project } = scenario;
      const run = (...args: string[]) => workspace.runOk(['policy', ...args]);
      const pack = { name: project, version: '1.0.0', forbiddenType: 'holdfast:index:Thing' };
      const name = `${organization}/${pack.name}`;
      const directory = await writePolicyPack(workspace, pack);
      await run('publish', organization, '--cwd', directory);
      await expectFailure(workspace, ['policy', 'publish', organization, '--cwd', directory], 'already published');
      // A group of its own: other tests use the same organization.
      await run('group', 'new', project, '--org', organization, '--entity-type', 'stacks');
      await run('group', 'edit', project, '--org', organization, '--add-stack', `${project}/dev`);
      await run('enable', name, 'latest', '--policy-group', project);

      await workspace.writeProgram(thingProgram({ project, things: { a: { value: '1' } } }));
      const refused = await expectFailure(workspace, ['up', ...unattended], 'holdfast:index:Thing is not allowed');
      expect(refused).toMatch(/mandatory.*-rule/);
      expect(JSON.stringify(await workspace.exportState())).not.toContain('holdfast:index:Thing');
      await expectFailure(workspace, ['policy', 'rm', name, 'all', '--yes'], /\[409\].*is enabled in policy group/);

      // The CLI compares versions and tags when it takes one out of the list.
      await run('group', 'edit', project, '--org', organization, '--remove-policy-pack', `${pack.name}@1.0.0`);
      await workspace.runOk(['up', ...unattended]);
      await run('rm', name, 'all', '--yes');
      expect((await run('ls', organization)).stdout).not.toContain(pack.name);
      await run('group', 'rm', project, '--org', organization, '--yes');
    },
    scenarioTimeoutMs,
  );

  test.concurrent(
    'features of other products are rejected with an alternative',
    async () => {
      await using scenario = await Scenario.create(await server());
      const { workspace } = scenario;
      await expectFailure(
        workspace,
        ['stack', 'init', scenario.stackName('remote'), '--remote-config', '--no-select'],
        /no configuration of stacks.*Pulumi\.<stack>\.yaml.*--remote-config/,
      );
      await expectFailure(
        workspace,
        ['stack', 'init', scenario.stackName('remote'), '--esc-config', '--no-select', '--non-interactive'],
        /Nothing was created: this server has no Pulumi ESC.*--esc-config/,
      );
      await expectFailure(workspace, ['stack', 'export', '--stack', scenario.stackName('remote')], 'no stack named');
      await expectFailure(
        workspace,
        ['deployment', 'run', 'update', 'https://example.com/x.git'],
        /Pulumi Deployments .* is another product/,
      );
      const { organization } = await server();
      const environment = `${organization}/some/environment`;
      const rejected: readonly (readonly [readonly string[], RegExp])[] = [
        [['env', 'ls'], /ESC/],
        [['env', 'open', environment], /ESC/],
        [['config', 'env', 'add', 'some', '--yes'], /ESC/],
        [['deployment', 'list'], /Deployments/],
        [['stack', 'schedule', 'list'], /Deployments/],
        [['neo', 'hello', '--non-interactive'], /Neo/],
        [['insights', 'account', 'list'], /Insights/],
        [['policy', 'issue', 'list'], /policy issues/],
        [['template', 'publish', '.', '--version', '1.0.0', '--name', 'made-here'], /no registry/],
      ];
      const expectRejection = async ([args, message]: (typeof rejected)[number]): Promise<void> =>
        expect(await expectFailure(workspace, args, message)).toContain('[404] ');
      for (let at = 0; at < rejected.length; at += 4)
        await Promise.all(rejected.slice(at, at + 4).map(expectRejection));
      const signUp = await workspace.run(['stack', 'ls'], {
        env: {
          ...{ PULUMI_ACCESS_TOKEN: undefined, PULUMI_HOME: join(workspace.dir, 'stranger') },
          ...{ PULUMI_ENABLE_AUTOMATIC_AGENT_SIGNUP: 'true', CLAUDECODE: '1' },
        },
      });
      expect(outputOf(signUp)).toMatch(/Agent sign-up is another product.*holdfast admin/);
      await writeFile(join(workspace.programDir, 'Pulumi.dev.yaml'), 'environment:\n  - some-environment\n');
      await expectFailure(workspace, ['up', ...unattended], /Pulumi ESC \(environments\) is another product/);
    },
    scenarioTimeoutMs,
  );
});
