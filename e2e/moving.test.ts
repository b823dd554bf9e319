import { copyFile, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, test } from '@jest/globals';
import { holdfastOutput, runAdmin } from '../testkit/admin-command.ts';
import { startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { expectNothingToDo, newProject, unattended } from '../testkit/scenario.ts';
import { reference, thingProgram } from '../testkit/stash-program.ts';
import { fileServer, scenarioTimeoutMs, suite } from '../testkit/suite.ts';

await suite('moving in and out', { ownServer: true }, () => {
  const server = fileServer(() => startOwnHoldfast({}, { prepared: true }));

  test(
    'stacks of the file backend move here with their history, and back, and a preview finds no changes',
    async () => {
      const holdfast = await server();
      const { organization } = holdfast;
      await using workspace = await holdfast.workspace();
      const project = newProject('moving');
      const program = (value: string) =>
        thingProgram({
          project,
          things: { a: { value, secretValue: `\${${project}:password}` }, b: { value: reference('a', 'value') } },
          outputs: { echo: reference('a', 'secretEcho') },
        });
      const file = { env: { PULUMI_BACKEND_URL: `file://${workspace.stateDir}`, PULUMI_ACCESS_TOKEN: undefined } };
      await workspace.writeProgram(program('1'));
      for (const stack of ['prod', 'dev']) {
        await workspace.runOk(['stack', 'init', stack], file);
        await workspace.runOk(['config', 'set', '--secret', 'password', 'hunter2'], file);
        await workspace.runOk(['config', 'set', '--path', '--secret', 'list[0].key', 'hunter3'], file);
        await workspace.runOk(['up', ...unattended, '--message', `first of ${stack}`], file);
      }
      await workspace.writeProgram(program('2'));
      await workspace.runOk(['up', ...unattended, '--message', 'second', '--stack', 'dev'], file);
      await workspace.runOk(['stack', 'tag', 'set', 'team', 'core', '--stack', 'dev'], file);
      const historyOf = async (stack: string, options = {}): Promise<{ message: string }[]> => {
        const { stdout } = await workspace.runOk(['stack', 'history', '--json', '--stack', stack], options);
        return JSON.parse(stdout) as { message: string }[];
      };
      const history = await historyOf('dev', file);

      const words = ['import', '--from', `file://${workspace.stateDir}`, '--organization', organization];
      expect(await holdfastOutput(holdfast, {}, ...words)).toContain(
        '2 to create, 0 to continue, 0 complete, 0 left out',
      );
      await holdfastOutput(holdfast, {}, ...words, '--apply');
      expect(await holdfastOutput(holdfast, {}, ...words, '--verify')).toContain('no differences');

      // Secrets stay with their passphrase, until the CLI moves them.
      const dev = `${organization}/${project}/dev`;
      await expectNothingToDo(workspace, dev);
      const here = await historyOf(dev);
      for (const [at, { message }] of history.entries()) expect(here[at]).toMatchObject({ message });
      expect(here.map((each) => ({ ...each, version: 0 }))).toEqual(history.map((each) => ({ ...each, version: 0 })));
      const tags = JSON.parse((await workspace.runOk(['stack', 'tag', 'ls', '--json', '--stack', dev])).stdout);
      expect(tags).toMatchObject({ team: 'core', 'pulumi:project': project });
      const old = await workspace.runOk(['stack', 'export', '--version', '1', '--show-secrets', '--stack', dev]);
      expect(old.stdout).toContain('hunter2');
      await workspace.runOk(['stack', 'change-secrets-provider', 'default', '--stack', dev]);
      await workspace.writeProgram(program('3'));
      const withoutPassphrase = { env: { PULUMI_CONFIG_PASSPHRASE: undefined } };
      await workspace.runOk(['up', ...unattended, '--message', 'third', '--stack', dev], withoutPassphrase);

      // The CLI's own command moves the newest state of one stack, and its secrets to the keys of the server.
      const migrated = `${organization}/${project}/migrated`;
      await workspace.writeProgram(program('1'));
      const target = ['--target', migrated, '--yes'];
      await workspace.runOk(['stack', 'migrate', `file://${workspace.stateDir}`, 'prod', ...target]);
      await workspace.runOk(['preview', '--expect-no-changes', '--stack', migrated], withoutPassphrase);

      // An organization of a service is a source as well. After an update, its history has the configuration, which replaces
      // the one in the file, whose secrets are those of the source.
      await workspace.runOk(['up', ...unattended, '--expect-no-changes', '--stack', migrated], withoutPassphrase);
      await runAdmin(holdfast, 'create-organization', 'other-org');
      await runAdmin(holdfast, 'add-member', 'ada', '--organization', 'other-org');
      const service = ['import', '--from', holdfast.url, '--source-organization', organization];
      const into = [...service, '--organization', 'other-org', '--stack', `${project}/migrated`];
      const access = { PULUMI_ACCESS_TOKEN: holdfast.token, HOLDFAST_PUBLIC_URL: holdfast.url };
      await holdfastOutput(holdfast, access, ...into, '--apply');
      expect(await holdfastOutput(holdfast, access, ...into, '--verify')).toContain('no differences');
      const other = `other-org/${project}/migrated`;
      await workspace.runOk(['config', 'refresh', '--force', '--stack', other], withoutPassphrase);
      await workspace.runOk(['preview', '--expect-no-changes', '--stack', other], withoutPassphrase);
      const shown = ['stack', 'output', 'echo', '--show-secrets', '--stack', other];
      expect((await workspace.runOk(shown, withoutPassphrase)).stdout.trim()).toBe('hunter2');

      const out = join(workspace.dir, 'out');
      const exported = ['export', '--organization', organization, '--to', `file://${out}`];
      await expect(holdfastOutput(holdfast, {}, ...exported)).rejects.toThrow('set PULUMI_CONFIG_PASSPHRASE');
      const passphrase = { PULUMI_CONFIG_PASSPHRASE: 'another passphrase' };
      expect(await holdfastOutput(holdfast, passphrase, ...exported)).toContain('Exported 3 stacks with 7 updates');
      const files = (await readdir(out, { recursive: true, withFileTypes: true })).filter((each) => each.isFile());
      for (const { name, parentPath } of files) {
        const bytes = await readFile(join(parentPath, name));
        const text = (name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString();
        expect([name, text]).toEqual([name, expect.not.stringMatching(/hunter|"type":"service"/)]);
      }
      const settings = (stack: string): string => `Pulumi.${stack}.yaml`;
      const left = { env: { ...passphrase, PULUMI_BACKEND_URL: `file://${out}`, PULUMI_ACCESS_TOKEN: undefined } };
      for (const [stack, value, env] of [
        ['dev', '3', left.env],
        // This stack has kept its own passphrase.
        ['prod', '1', { ...left.env, PULUMI_CONFIG_PASSPHRASE: 'holdfast-e2e' }],
      ] as const) {
        await workspace.writeProgram(program(value));
        await copyFile(join(out, 'config', project, settings(stack)), join(workspace.programDir, settings(stack)));
        await workspace.runOk(['preview', '--expect-no-changes', '--stack', stack], { env });
        await workspace.runOk(['up', ...unattended, '--expect-no-changes', '--stack', stack], { env });
        const echo = await workspace.runOk(['stack', 'output', 'echo', '--show-secrets', '--stack', stack], { env });
        expect(echo.stdout.trim()).toBe('hunter2');
        const key = await workspace.runOk(['config', 'get', '--path', 'list[0].key', '--stack', stack], { env });
        expect(key.stdout.trim()).toBe('hunter3');
      }
      // What was done there is not overwritten.
      await expect(holdfastOutput(holdfast, passphrase, ...exported)).rejects.toThrow(
        'dev: not exported: it was updated in',
      );
      expect((await historyOf('dev', left)).map(({ message }) => message)).toEqual(
        expect.arrayContaining(['third', 'second', 'first of dev']),
      );
    },
    scenarioTimeoutMs,
  );
});
