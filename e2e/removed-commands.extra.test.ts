import { mkdir, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { expect, test } from '@jest/globals';
import { expectNothingToDo, Scenario, unattended } from '../testkit/scenario.ts';
import { thingProgram } from '../testkit/stash-program.ts';
import { fileServer, scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { ensureToolchain } from '../testkit/toolchain/toolchain.ts';
import { until } from '../testkit/until.ts';

const cli = '3.142';

await suite('commands that the CLI no longer has', { tools: ['pulumi-3.142', 'test-provider'] }, () => {
  const server = fileServer();

  test(
    'watch updates the stack whenever the program changes',
    async () => {
      await using scenario = await Scenario.create(await server(), { cli });
      const { workspace, project } = scenario;
      // The CLI gets change notifications from a helper program that is not built with it.
      const tools = join(workspace.dir, 'tools');
      await mkdir(tools);
      const helper = '#!/bin/sh\nwhile sleep 0.1; do if [ -e saved ]; then rm saved; echo Pulumi.yaml; fi; done\n';
      await writeFile(join(tools, 'pulumi-watch'), helper, { mode: 0o755 });
      const cliDir = dirname((await ensureToolchain({ only: ['pulumi-3.142'] }))['pulumi-3.142']);
      const watch = await workspace.spawn(['watch'], {
        env: { PATH: [tools, cliDir, '/usr/bin', '/bin'].join(delimiter) },
      });
      for (const value of ['1', '2', '3']) {
        await workspace.writeProgram(thingProgram({ project, things: { a: { value } } }));
        await writeFile(join(workspace.programDir, 'saved'), '');
        const completions = Number(value);
        const isDone = (): boolean => watch.stdout.split('Update complete').length > completions;
        await until(isDone, `update ${value}`);
        expect((await workspace.cloud.objects()).get('a-1')).toMatchObject({ value });
      }
      await watch.killAll();
      await expectNothingToDo(workspace);
    },
    scenarioTimeoutMs,
  );

  test(
    'logs of resources are read',
    async () => {
      await using scenario = await Scenario.create(await server(), { cli });
      const { workspace, project } = scenario;
      await workspace.writeProgram(thingProgram({ project, things: { a: { value: '1' } } }));
      await workspace.runOk(['up', ...unattended]);
      await workspace.runOk(['logs']);
    },
    scenarioTimeoutMs,
  );
});
