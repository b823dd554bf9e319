import { expect, test } from '@jest/globals';
import { callApiOk } from '../testkit/api-call.ts';
import type { HoldfastServer } from '../testkit/holdfast-server.ts';
import { newProject, outputOf, Scenario, unattended } from '../testkit/scenario.ts';
import { reference, secret } from '../testkit/stash-program.ts';
import { fileServer, scenarioTimeoutMs, suite } from '../testkit/suite.ts';

/** The environment of a CLI whose token has these permissions and no others. */
async function holder(
  server: HoldfastServer,
  scopes: readonly { readonly permissions: readonly string[]; readonly stacks: string }[],
): Promise<{ env: Record<string, string> }> {
  const body = { name: newProject('outputs'), service: true, scopes };
  const { tokenValue } = await callApiOk(server, 'POST', `orgs/${server.organization}/tokens`, body);
  return { env: { PULUMI_ACCESS_TOKEN: tokenValue } };
}

await suite('outputs of another stack', {}, () => {
  const server = fileServer();

  test(
    'are what a StackReference reads with the permission outputs; secret ones with decrypt',
    async () => {
      const holdfast = await server();
      await using producer = await Scenario.create(holdfast);
      await using consumer = await Scenario.create(holdfast);
      const things = { a: { type: 'pulumi:index:Stash', properties: { input: secret('s3cret') } } };
      const outputs = { url: 'http://x', password: reference('a', 'output') };
      await producer.workspace.writeProgram({ name: producer.project, runtime: 'yaml', resources: things, outputs });
      await producer.workspace.runOk(['up', ...unattended]);
      const name = producer.stackName('dev');
      const own = { permissions: ['write', 'decrypt'], stacks: `${consumer.project}/*` };
      const read = (...names: string[]) => ({ permissions: names, stacks: `${producer.project}/dev` });
      const program = (...names: string[]) => ({
        name: consumer.project,
        runtime: 'yaml' as const,
        resources: { ref: { type: 'pulumi:pulumi:StackReference', properties: { name } } },
        outputs: Object.fromEntries(names.map((each) => [each, `\${ref.outputs["${each}"]}`])),
      });
      const { workspace } = consumer;
      const shown = async () =>
        JSON.parse((await workspace.runOk(['stack', 'output', '--json', '--show-secrets'])).stdout) as object;

      const plain = await holder(holdfast, [own, read('outputs')]);
      await workspace.writeProgram(program('url'));
      await workspace.runOk(['up', ...unattended], plain);
      expect(await shown()).toEqual({ url: 'http://x' });
      // Without decrypt a secret one is missing, which is null in YAML, not `{}`, and the CLI says why.
      await workspace.writeProgram(program('url', 'password'));
      const without = await workspace.run(['up', ...unattended], plain);
      expect(outputOf(without)).toMatch(
        /secret outputs were left out, because reading them needs the permission decrypt: password/,
      );
      expect(await shown()).toEqual({ url: 'http://x', password: null });

      const open = await holder(holdfast, [own, read('outputs', 'decrypt')]);
      await workspace.runOk(['up', ...unattended], open);
      expect(await shown()).toEqual({ url: 'http://x', password: 's3cret' });
      const listed = (await workspace.runOk(['stack', 'output'], plain)).stdout;
      expect(listed).not.toContain('s3cret');
      expect(listed).toMatch(/password\s+\[secret\]/);

      // Nothing else of the stack is there.
      const nothing = await workspace.run(['up', ...unattended], await holder(holdfast, [own]));
      expect(outputOf(nothing)).toMatch(new RegExp(`unknown stack.*${name}`));
      expect(outputOf(await workspace.run(['stack', 'history', '--stack', name], open))).toMatch(/not found/i);
      expect((await workspace.runOk(['stack', 'ls', '--all'], open)).stdout).not.toContain(producer.project);
    },
    scenarioTimeoutMs,
  );
});
