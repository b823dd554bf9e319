import { mkdtempSync, rmSync } from 'node:fs';
import { copyFile, cp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { holdfastOutput } from '../testkit/admin-command.ts';
import { startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { newProject, unattended } from '../testkit/scenario.ts';
import { reference, thingProgram } from '../testkit/stash-program.ts';
import { fileServer, scenarioTimeoutMs } from '../testkit/suite.ts';
import type { PulumiVersion } from '../testkit/toolchain/recipes.ts';
import { tuned } from '../testkit/tuned.ts';
import { until } from '../testkit/until.ts';

/** What encrypts the secrets of a bundle, for the server and for the CLI. */
export interface BundleAccess {
  readonly settings: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Defines the test of a bundle, with its own server. `openAccess` is called once. */
export function testBundle(name: string, cli: PulumiVersion, openAccess: () => Promise<BundleAccess>): void {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-bundle-'));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));
  let opened: Promise<BundleAccess> | undefined;
  const access = async () => {
    opened ??= openAccess();
    const { env, settings } = await opened;
    return { env, bundle: { HOLDFAST_BUNDLE_URL: `file://${directory}`, ...settings } };
  };
  const server = fileServer(async () =>
    startOwnHoldfast({ ...(await access()).bundle, ...tuned({ sweepSeconds: 1 }) }, { prepared: true }),
  );

  test(
    `work goes on in it with ${name} while no server runs, and comes back; a stack that moved on both sides is named`,
    async () => {
      const { bundle, env: keyEnv } = await access();
      const holdfast = await server();
      const { organization } = holdfast;
      await using workspace = await holdfast.workspace({ cli });
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
        const status = await holdfastOutput(holdfast, bundle, 'bundle', 'status', '--json').catch(() => '{}');
        const { behind, errors, stacks: count } = JSON.parse(status);
        return behind === 0 && count === stacks.length && errors.length === 0;
      };
      await until(isComplete, 'the bundle has both stacks', { everyMs: 500 });

      await holdfast.kill();
      const env = {
        PULUMI_BACKEND_URL: `file://${join(directory, organization)}`,
        PULUMI_ACCESS_TOKEN: undefined,
        ...keyEnv,
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
      const returned = await holdfastOutput(holdfast, bundle, 'bundle', 'return', '--apply').catch(
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
}
