import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { holdfastOutput } from '../testkit/admin-command.ts';
import { startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { newProject, unattended } from '../testkit/scenario.ts';
import { reference, thingProgram } from '../testkit/stash-program.ts';
import { fileServer, scenarioTimeoutMs, suite } from '../testkit/suite.ts';

await suite('a round trip', { ownServer: true }, () => {
  // The other one is a different installation.
  const first = fileServer(() => startOwnHoldfast({}, { prepared: true }));
  const second = fileServer(() => startOwnHoldfast());

  test(
    'stacks go from a folder through two servers and an archive to another folder, with all that they had',
    async () => {
      const [one, other] = await Promise.all([first(), second()]);
      await using workspace = await one.workspace();
      const project = newProject('trip');
      const program = (value: string) =>
        thingProgram({
          project,
          things: { a: { value, secretValue: `\${${project}:password}` }, b: { value: reference('a', 'value') } },
          outputs: { echo: reference('a', 'secretEcho') },
        });
      const of = (folder: string) => ({
        env: { PULUMI_BACKEND_URL: `file://${folder}`, PULUMI_ACCESS_TOKEN: undefined },
      });
      const before = of(workspace.stateDir);
      const stacks = ['dev', 'stage', 'prod'];
      await workspace.writeProgram(program('1'));
      for (const stack of stacks) {
        await workspace.runOk(['stack', 'init', stack], before);
        await workspace.runOk(['config', 'set', '--secret', 'password', `hunter-${stack}`], before);
        await workspace.runOk(['up', ...unattended, '--message', `first of ${stack}`], before);
      }
      await workspace.writeProgram(program('2'));
      await workspace.runOk(['up', ...unattended, '--message', 'second', '--stack', 'dev'], before);
      await workspace.runOk(['refresh', ...unattended, '--message', 'refreshed', '--stack', 'dev'], before);
      await workspace.runOk(['stack', 'tag', 'set', 'team', 'core', '--stack', 'dev'], before);
      // Without an update.
      await workspace.runOk(['stack', 'init', 'fresh'], before);

      const from = ['import', '--from', `file://${workspace.stateDir}`, '--organization', one.organization];
      expect(await holdfastOutput(one, {}, ...from, '--apply')).toContain('Imported 5 versions of 3 stacks');
      expect(await holdfastOutput(one, {}, ...from, '--verify')).toContain('Compared 4 stacks and 5 versions');
      const archive = join(workspace.dir, 'archive');
      const passphrase = { PULUMI_CONFIG_PASSPHRASE: 'of the archive' };
      await holdfastOutput(one, passphrase, 'export', '--organization', one.organization, '--archive', archive);
      const into = ['import', '--from', 'archive', archive, '--organization', other.organization];
      expect(await holdfastOutput(other, passphrase, ...into, '--apply')).toContain('Imported 5 versions of 3 stacks');
      expect(await holdfastOutput(other, passphrase, ...into, '--verify')).toContain('no differences');
      const out = join(workspace.dir, 'out');
      const exported = ['export', '--organization', other.organization, '--to', `file://${out}`];
      expect(await holdfastOutput(other, {}, ...exported)).toContain('Exported 4 stacks with 5 updates');

      // Both folders have the same stacks, entries and states.
      const after = of(out);
      const filesOf = async (folder: string) =>
        (await readdir(join(folder, '.pulumi/history'), { recursive: true }))
          .filter((name) => /\.history\.json(\.gz)?$/.test(name))
          // An archive has no names of files, in which the CLI has times in ns.
          .map((name) => name.replace(/-\d+\.history.*$/, ''))
          .sort();
      expect(await filesOf(out)).toEqual(await filesOf(workspace.stateDir));
      const read = async (words: string[], stack: string, folder: typeof before) =>
        JSON.parse((await workspace.runOk([...words, '--stack', stack], folder)).stdout);
      for (const stack of [...stacks, 'fresh']) {
        const [there, here] = [before, after].map(async (folder) => {
          const history: { version: number }[] = await read(
            ['stack', 'history', '--json', '--full-dates'],
            stack,
            folder,
          );
          return {
            updates: history.map((update) => ({ ...update, version: 0 })),
            versions: history.map(({ version }) => version),
          };
        }) as [Promise<{ updates: object[]; versions: number[] }>, Promise<{ updates: object[]; versions: number[] }>];
        const { updates, versions } = await here;
        expect(updates).toEqual((await there).updates);
        // The CLI does not number them, the export does.
        expect(versions).toEqual(updates.map((_, at) => updates.length - at));
        const tags = ['stack', 'tag', 'ls', '--json'];
        expect(await read(tags, stack, after)).toMatchObject(await read(tags, stack, before));
        const state = ['stack', 'export', '--show-secrets'];
        expect((await read(state, stack, after)).deployment.resources).toEqual(
          (await read(state, stack, before)).deployment.resources,
        );
      }
      await workspace.runOk(['login', `file://${out}`], {
        env: { PULUMI_BACKEND_URL: undefined, PULUMI_ACCESS_TOKEN: undefined },
      });
      const logged = { env: { PULUMI_BACKEND_URL: undefined, PULUMI_ACCESS_TOKEN: undefined } };
      for (const [stack, value] of [
        ['dev', '2'],
        ['stage', '1'],
        ['prod', '1'],
      ] as const) {
        await workspace.writeProgram(program(value));
        await workspace.runOk(['preview', '--expect-no-changes', '--stack', stack], logged);
        const echo = await workspace.runOk(['stack', 'output', 'echo', '--show-secrets', '--stack', stack], logged);
        expect(echo.stdout.trim()).toBe(`hunter-${stack}`);
      }
      await workspace.writeProgram(program('3'));
      await workspace.runOk(['up', ...unattended, '--stack', 'dev'], logged);
    },
    scenarioTimeoutMs,
  );
});
