import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';

import { expectFailure, expectNothingToDo, Scenario, unattended } from '../testkit/scenario.ts';
import { reference, thingProgram } from '../testkit/stash-program.ts';
import { fileServer, scenarioTimeoutMs, suite } from '../testkit/suite.ts';

await suite('commands for configuration and secrets', {}, () => {
  const server = fileServer();

  test.concurrent(
    'secrets are encrypted in the configuration, shown decrypted, and survive on the server',
    async () => {
      await using scenario = await Scenario.create(await server());
      const { workspace, project } = scenario;
      const configFile = join(workspace.programDir, 'Pulumi.dev.yaml');
      const passwords = ['hunter2', 'grüße 😀 "quoted" \\ end', '-', 'x'.repeat(10_000)];
      for (const [at, password] of passwords.entries()) {
        await workspace.runOk(['config', 'set', '--secret', `password${at}`], { input: password });
      }
      await workspace.runOk(['config', 'set', 'plain', 'seen by all']);
      await workspace.runOk(['config', 'set', '--path', '--secret', 'nested.list[0].token', 'deep secret']);
      await workspace.runOk(['config', 'set-all', '--plaintext', 'one=1', '--secret', 'two=zwei']);
      const text = await readFile(configFile, 'utf8');
      for (const hidden of [...passwords.filter((each) => each.length > 1), 'deep secret', 'zwei'])
        expect(text).not.toContain(hidden);
      for (const [at, password] of passwords.entries()) {
        expect((await workspace.runOk(['config', 'get', `password${at}`])).stdout.replace(/\n$/, '')).toBe(password);
      }
      const things = { a: { value: reference('plain'), secretValue: reference('password0') } };
      const config = { plain: { type: 'string' }, password0: { type: 'string', secret: true } };
      await workspace.writeProgram({ ...thingProgram({ project, things }), config });
      await workspace.runOk(['up', ...unattended]);
      expect([...(await workspace.cloud.objects()).values()]).toMatchObject([
        { value: 'seen by all', secretValue: 'hunter2' },
      ]);

      const ask = async (): Promise<unknown> =>
        JSON.parse((await workspace.runOk(['config', '--show-secrets', '--json'])).stdout);
      const before = await ask();
      expect(before).toMatchObject({ [`${project}:nested`]: { objectValue: { list: [{ token: 'deep secret' }] } } });
      await rm(configFile);
      await workspace.runOk(['config', 'refresh', '--force']);
      expect(await ask()).toEqual(before);
      expect(await readFile(configFile, 'utf8')).not.toContain('hunter2');
      await workspace.runOk(['config', 'rm', 'plain']);
      await expectFailure(workspace, ['config', 'get', 'plain'], 'not found');
      await workspace.runOk(['stack', 'history', '--show-secrets']);
      await expectNothingToDo(workspace).catch(() => workspace.runOk(['config', 'set', 'plain', 'seen by all']));
      await expectNothingToDo(workspace);

      // Another stack cannot decrypt what one stack has encrypted.
      await workspace.runOk(['stack', 'init', scenario.stackName('other'), '--no-select']);
      const stolen = ['config', 'get', 'password0', '--stack', 'other', '--config-file', configFile];
      await expectFailure(workspace, stolen, /\[400\]|decrypt/);
      await workspace.runOk(['config', 'cp', '--dest', 'other']);
      expect((await workspace.runOk(['config', 'get', 'password0', '--stack', 'other'])).stdout.trim()).toBe('hunter2');
    },
    scenarioTimeoutMs,
  );

  test.concurrent(
    'a stack changes to a passphrase and back and keeps its secrets each time',
    async () => {
      await using scenario = await Scenario.create(await server());
      const { workspace, project } = scenario;
      const program = thingProgram({
        project,
        things: { a: { value: '1', secretValue: reference('password') } },
        outputs: { echo: reference('a', 'secretEcho') },
      });
      await workspace.writeProgram({ ...program, config: { password: { type: 'string', secret: true } } });
      await workspace.runOk(['config', 'set', '--secret', 'password', 'hunter2']);
      await workspace.runOk(['up', ...unattended]);
      const expectSecrets = async (providerType: string): Promise<void> => {
        expect((await workspace.exportState()).deployment.secrets_providers?.type).toBe(providerType);
        expect((await workspace.runOk(['stack', 'output', 'echo', '--show-secrets'])).stdout.trim()).toBe('hunter2');
        expect((await workspace.runOk(['config', 'get', 'password'])).stdout.trim()).toBe('hunter2');
        await expectNothingToDo(workspace);
      };
      await expectSecrets('service');
      const passphrase = 'holdfast-e2e\n';
      await workspace.runOk(['stack', 'change-secrets-provider', 'passphrase'], { input: passphrase.repeat(2) });
      await expectSecrets('passphrase');
      await workspace.runOk(['stack', 'change-secrets-provider', 'default']);
      await expectSecrets('service');

      const made = ['stack', 'init', scenario.stackName('locked'), '--secrets-provider', 'passphrase'];
      await workspace.runOk(made);
      await workspace.runOk(['config', 'set', '--secret', 'password', 'hunter3']);
      await workspace.runOk(['up', ...unattended]);
      expect((await workspace.exportState()).deployment.secrets_providers?.type).toBe('passphrase');
      expect((await workspace.runOk(['stack', 'output', 'echo', '--show-secrets'])).stdout.trim()).toBe('hunter3');
    },
    scenarioTimeoutMs,
  );
});
