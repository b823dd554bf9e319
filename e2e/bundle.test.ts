import { mkdtempSync, rmSync } from 'node:fs';
import { copyFile, cp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { runHoldfast } from '../testkit/admin-command.ts';
import { startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { pollUntil } from '../testkit/poll.ts';
import { newProject, unattended } from '../testkit/scenario.ts';
import { reference, thingProgram } from '../testkit/stash-program.ts';
import { fileServer, scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { tuned } from '../testkit/tuned.ts';

await suite('the break-glass bundle', { ownServer: true }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-bundle-'));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));
  const bundle = { HOLDFAST_BUNDLE_URL: `file://${directory}`, HOLDFAST_BUNDLE_PASSPHRASE: 'correct horse battery' };
  const server = fileServer(() => startOwnHoldfast({ ...bundle, ...tuned({ sweepSeconds: 1 }) }));

  test(
    'work goes on in it while no server runs, and comes back; a stack that moved on both sides is named',
    async () => {
      const holdfast = await server();
      const { organization } = holdfast;
      await using workspace = await holdfast.workspace();
      const project = newProject('bundle');
      const program = (value: string) =>
        thingProgram({
          project,
          things: { a: { value, secretValue: `\${${project}:password}` } },
          outputs: { echo: reference('a', 'secretEcho') },
        });
      const stacks = ['dev', 'prod'];
      const named = (stack: string): string => `${organization}/${project}/${stack}`;
      const settings = (stack: string): string => join(workspace.programDir, `Pulumi.${stack}.yaml`);
      await workspace.writeProgram(program('1'));
      for (const stack of stacks) {
        await workspace.runOk(['stack', 'init', named(stack)]);
        await workspace.runOk(['config', 'set', '--secret', 'password', 'hunter2', '--stack', named(stack)]);
        await workspace.runOk(['up', ...unattended, '--stack', named(stack)]);
        await cp(settings(stack), join(workspace.dir, stack));
      }
      const isComplete = async (): Promise<boolean> => {
        const status = await runHoldfast(holdfast, bundle, 'bundle', 'status', '--json').catch(() => '{}');
        const { behind, errors, stacks: count } = JSON.parse(status);
        return behind === 0 && count === stacks.length && errors.length === 0;
      };
      await pollUntil('the bundle has both stacks', isComplete, { timeoutMs: 60_000, everyMs: 500 });

      await holdfast.kill();
      const env = {
        PULUMI_BACKEND_URL: `file://${join(directory, organization)}`,
        PULUMI_ACCESS_TOKEN: undefined,
        PULUMI_CONFIG_PASSPHRASE: bundle.HOLDFAST_BUNDLE_PASSPHRASE,
      };
      for (const stack of stacks) {
        await copyFile(join(directory, organization, 'config', project, `Pulumi.${stack}.yaml`), settings(stack));
        await workspace.runOk(['preview', '--expect-no-changes', '--stack', stack], { env });
      }
      await workspace.writeProgram(program('2'));
      for (const stack of stacks) {
        await workspace.runOk(['up', ...unattended, '--message', 'emergency', '--stack', stack], { env });
      }

      await holdfast.restart();
      for (const stack of stacks) {
        await rm(settings(stack));
        await cp(join(workspace.dir, stack), settings(stack));
      }
      await workspace.writeProgram(program('3'));
      await workspace.runOk(['up', ...unattended, '--stack', named('prod')]);
      const returned = await runHoldfast(holdfast, bundle, 'bundle', 'return', '--apply').catch(
        (error: Error) => error,
      );
      expect(String(returned)).toMatch(new RegExp(`${named('dev')} +returned +1 version`));
      expect(String(returned)).toMatch(new RegExp(`${named('prod')} +refused +moved on both sides`));
      await workspace.writeProgram(program('2'));
      const withoutPassphrase = { env: { PULUMI_CONFIG_PASSPHRASE: undefined } };
      await workspace.runOk(['preview', '--expect-no-changes', '--stack', named('dev')], withoutPassphrase);
      const history = await workspace.runOk(['stack', 'history', '--json', '--stack', named('dev')], withoutPassphrase);
      expect(JSON.parse(history.stdout)[0]).toMatchObject({ message: 'emergency', version: 2 });
      const { stdout } = await workspace.runOk(['stack', 'output', 'echo', '--show-secrets', '--stack', named('dev')]);
      expect(stdout.trim()).toBe('hunter2');
    },
    scenarioTimeoutMs,
  );
});
