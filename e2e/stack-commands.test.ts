import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';

import { resourcesOfType } from '../testkit/pulumi-state.ts';
import { expectFailure, newProject, outputOf, Scenario, unattended } from '../testkit/scenario.ts';
import { reference, secret, stashProgram, thingProgram } from '../testkit/stash-program.ts';
import { fileServer, scenarioTimeoutMs, suite } from '../testkit/suite.ts';

await suite('commands for users and stacks', {}, () => {
  const server = fileServer();

  test.concurrent(
    'login, whoami, org, about and logout use the user and the organization',
    async () => {
      const { url, token, organization, workspace: makeWorkspace } = await server();
      await using workspace = await makeWorkspace({ env: { PULUMI_BACKEND_URL: '' } });
      const stranger = { env: { PULUMI_ACCESS_TOKEN: 'a-token-that-nobody-has' } };
      expect(outputOf(await workspace.run(['login', url], stranger))).toMatch(/invalid|Unauthorized/);
      expect(outputOf(await workspace.runOk(['login', url]))).toContain(`Logged in to ${url}`);
      const user = (await workspace.runOk(['whoami'])).stdout.trim();
      expect(JSON.parse((await workspace.runOk(['whoami', '--json'])).stdout)).toMatchObject({
        user,
        organizations: expect.arrayContaining([organization]),
      });
      await workspace.runOk(['org', 'set-default', organization]);
      expect((await workspace.runOk(['org', 'get-default'])).stdout.trim()).toBe(organization);
      expect((await workspace.runOk(['org'])).stdout).toContain(organization);
      await workspace.writeProgram(stashProgram({ project: newProject('about'), count: 0 }));
      const about = JSON.parse((await workspace.runOk(['about', '--json'])).stdout);
      // Without a web console the CLI has no URL to print here.
      expect(about).toMatchObject({ backend: { user, organizations: expect.arrayContaining([organization]) } });
      await workspace.runOk(['logout', url]);
      expect(outputOf(await workspace.run(['whoami'], { env: { PULUMI_ACCESS_TOKEN: undefined } }))).not.toContain(
        token,
      );
    },
    scenarioTimeoutMs,
  );

  test.concurrent(
    'the audit log is listed and exported',
    async () => {
      const { organization, ...parts } = await server();
      await using scenario = await Scenario.create({ organization, ...parts });
      const { workspace } = scenario;
      const stack = scenario.stackName('dev');
      const audit = (command: string, ...flags: string[]) =>
        workspace.runOk(['org', 'audit-log', command, '--org', organization, ...flags]);
      await workspace.runOk(['stack', 'tag', 'set', 'color', 'red']);
      const list = async (...flags: string[]): Promise<{ events: { event: string; description: string }[] }> =>
        JSON.parse((await audit('list', '--all', '--output', 'json', ...flags)).stdout);
      const own = (await list()).events.filter(({ description }) => description.endsWith(stack));
      expect(own.map(({ event }) => event)).toEqual(expect.arrayContaining(['stack.tags', 'stack.create']));
      const user = (await workspace.runOk(['whoami'])).stdout.trim();
      const { events } = await list('--event-type', 'stack.create', '--user', user);
      expect(events).toContainEqual(
        expect.objectContaining({ event: 'stack.create', description: `Created a stack: ${stack}` }),
      );
      expect((await list('--user', 'nobody')).events).toEqual([]);
      const table = (await audit('list', '--event-type', 'stack.create')).stdout;
      expect(table).toContain('DESCRIPTION');
      expect((await audit('export', '--event-type', 'stack.tags')).stdout).toContain(
        `Replaced the tags of a stack: ${stack}`,
      );
      expect((await audit('export', '--format', 'cef')).stdout).toMatch(/^CEF:0\|Holdfast\|Holdfast\|/);
      const rows = JSON.parse((await audit('export', '--output', 'json')).stdout) as { events: { object: string }[] };
      expect(rows.events).toContainEqual(expect.objectContaining({ object: stack }));
    },
    scenarioTimeoutMs,
  );

  test.concurrent(
    'stacks are created, listed, selected, tagged and removed',
    async () => {
      await using scenario = await Scenario.create(await server());
      const { workspace, project } = scenario;
      await expectFailure(workspace, ['stack', 'init', scenario.stackName('dev')], 'already exists');
      await workspace.runOk(['stack', 'init', scenario.stackName('test.-_2'), '--no-select']);
      await workspace.runOk(['stack', 'init', scenario.stackName('copy'), '--copy-config-from', 'dev', '--no-select']);
      const list = async (...flags: string[]): Promise<unknown> =>
        JSON.parse((await workspace.runOk(['stack', 'ls', '--json', ...flags])).stdout);
      expect(await list()).toMatchObject([
        { name: 'copy', current: false },
        { name: 'dev', current: true },
        { name: 'test.-_2' },
      ]);

      await workspace.writeProgram(
        thingProgram({
          project,
          things: { a: { value: '1', secretValue: secret('hush') } },
          outputs: { value: reference('a', 'value'), echo: reference('a', 'secretEcho') },
        }),
      );
      await workspace.runOk(['up', ...unattended, '--message', 'first of all', '--stack', 'test.-_2']);
      await workspace.runOk(['stack', 'select', 'test.-_2']);
      expect(await list()).toMatchObject([{}, {}, { current: true, resourceCount: 3, updateInProgress: false }]);
      expect(await list('--all', '--project', project)).toHaveLength(3);
      expect((await workspace.runOk(['stack', '--show-urns', '--show-ids', '--show-secrets'])).stdout).toMatch(
        /a-1[\s\S]*hush/,
      );
      expect((await workspace.runOk(['stack', '--show-name'])).stdout.trim()).toBe('test.-_2');
      expect(JSON.parse((await workspace.runOk(['stack', 'output', '--json'])).stdout)).toEqual({
        value: '1',
        echo: '[secret]',
      });
      const shown = await workspace.runOk(['stack', 'output', '--json', '--show-secrets']);
      expect(JSON.parse(shown.stdout)).toEqual({ value: '1', echo: 'hush' });
      await workspace.runOk(['stack', 'graph', 'graph.dot']);
      expect(await readFile(join(workspace.programDir, 'graph.dot'), 'utf8')).toContain('::a"');

      await workspace.runOk(['stack', 'tag', 'set', 'color', 'light blue']);
      await workspace.runOk(['stack', 'tag', 'set', 'shape', 'round']);
      expect((await workspace.runOk(['stack', 'tag', 'get', 'color'])).stdout.trim()).toBe('light blue');
      expect(await list('--tag', 'color=light blue')).toMatchObject([{ name: 'test.-_2' }]);
      await workspace.runOk(['stack', 'tag', 'rm', 'color']);
      expect((await workspace.runOk(['stack', 'tag', 'ls', '--json'])).stdout).not.toContain('color');
      await workspace.runOk(['up', ...unattended]);
      expect(JSON.parse((await workspace.runOk(['stack', 'tag', 'ls', '--json'])).stdout)).toMatchObject({
        shape: 'round',
        'pulumi:project': project,
      });

      await expectFailure(workspace, ['cancel', '--yes'], 'so there is nothing to cancel');
      await expectFailure(workspace, ['stack', 'rm', '--yes'], 'still has resources; removal rejected');
      await workspace.runOk(['stack', 'rm', '--yes', '--force']);
      await workspace.runOk(['stack', 'rm', '--yes', 'dev']);
      expect(await list()).toMatchObject([{ name: 'copy' }]);
      await expectFailure(workspace, ['stack', 'export', '--stack', 'dev'], 'no stack named');
    },
    scenarioTimeoutMs,
  );

  test.concurrent(
    'a renamed stack has no changes, and its secrets, history and old versions are still readable',
    async () => {
      const holdfast = await server();
      await using scenario = await Scenario.create(holdfast);
      const { workspace, project } = scenario;
      const program = thingProgram({
        project,
        things: { a: { value: '1', secretValue: `\${${project}:password}` }, b: { value: reference('a', 'value') } },
        outputs: { echo: reference('a', 'secretEcho') },
      });
      await workspace.writeProgram(program);
      await workspace.runOk(['config', 'set', '--secret', 'password', 'hunter2']);
      await workspace.runOk(['up', ...unattended]);
      await workspace.runOk(['stack', 'rename', 'renamed']);
      await workspace.runOk(['up', ...unattended, '--expect-no-changes']);
      await workspace.runOk(['refresh', ...unattended, '--expect-no-changes']);
      expect((await workspace.runOk(['stack', 'output', 'echo', '--show-secrets'])).stdout.trim()).toBe('hunter2');
      expect((await workspace.runOk(['config', 'get', 'password'])).stdout.trim()).toBe('hunter2');
      const state = await workspace.exportState();
      expect(
        resourcesOfType(state, 'holdfast:index:Thing')
          .map(({ urn }) => urn)
          .sort(),
      ).toEqual(['a', 'b'].map((name) => scenario.thing(name, 'renamed')));
      expect(JSON.stringify(state)).not.toContain('::dev::');
      const old = await workspace.runOk(['stack', 'export', '--version', '1', '--show-secrets']);
      expect(old.stdout).toContain('hunter2');
      const history = JSON.parse((await workspace.runOk(['stack', 'history', '--output', 'json'])).stdout);
      expect(history.map(({ kind }: { kind: string }) => kind)).toEqual(['refresh', 'update', 'rename', 'update']);

      // The old name is free, and a new stack with it shares nothing with the renamed one.
      await workspace.runOk(['stack', 'init', scenario.stackName('dev'), '--no-select']);
      expect((await workspace.exportState({ stack: 'dev' })).deployment.resources ?? []).toEqual([]);
      await expectFailure(workspace, ['stack', 'rename', 'dev', '--stack', 'renamed'], 'already exists');
      await workspace.runOk(['stack', 'rename', `${holdfast.organization}/${project}-2/moved`, '--stack', 'renamed']);
      await workspace.writeProgram({ ...program, name: `${project}-2` });
      expect(
        (await workspace.runOk(['stack', 'output', 'echo', '--show-secrets', '--stack', 'moved'])).stdout.trim(),
      ).toBe('hunter2');
    },
    scenarioTimeoutMs,
  );

  test.concurrent(
    'a project is created from a template, and an unknown package is not found',
    async () => {
      const holdfast = await server();
      await using workspace = await holdfast.workspace();
      const project = newProject('templated');
      const template = join(workspace.dir, 'template');
      await mkdir(template);
      const file = {
        name: reference('PROJECT'),
        description: reference('DESCRIPTION'),
        runtime: 'yaml',
        template: { description: 'a test' },
        resources: {},
      };
      await writeFile(join(template, 'Pulumi.yaml'), JSON.stringify(file));
      await workspace.runOk([
        'new',
        template,
        '--yes',
        '--name',
        project,
        '--stack',
        `${holdfast.organization}/${project}/dev`,
      ]);
      await workspace.runOk(['up', ...unattended]);
      expect((await workspace.runOk(['project', 'ls'])).stdout).toContain(project);
      const output = await expectFailure(workspace, ['package', 'add', 'no-such-package'], 'not found');
      expect(output).not.toContain('registry query error');
    },
    scenarioTimeoutMs,
  );
});
