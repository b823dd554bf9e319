import { expect, test } from '@jest/globals';
import { runAdmin } from '../testkit/admin-command.ts';
import { startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { expectFailure, outputOf, Scenario, unattended } from '../testkit/scenario.ts';
import { fileServer, scenarioTimeoutMs, suite } from '../testkit/suite.ts';

await suite('pulumi org member', { ownServer: true }, () => {
  const server = fileServer(() => startOwnHoldfast({}, { prepared: true }));

  test(
    'lists members, changes their roles and removes them, and they lose what they could do',
    async () => {
      const holdfast = await server();
      const { organization } = holdfast;
      await using scenario = await Scenario.create(holdfast);
      const { workspace } = scenario;
      await workspace.writeProgram({ name: scenario.project, runtime: 'yaml', resources: {}, outputs: { a: '1' } });
      await runAdmin(holdfast, 'create-user', 'mia', '--organization', organization);
      const mia = { env: { PULUMI_ACCESS_TOKEN: (await runAdmin(holdfast, 'user', 'create-token', 'mia')).trim() } };
      const at = ['--org', organization] as const;
      const member = (...args: string[]) => workspace.runOk(['org', 'member', ...args, ...at]);
      await workspace.runOk(['up', ...unattended], mia);

      expect((await member('list')).stdout).toMatch(/mia\s.*member/i);
      await member('edit', 'mia', '--fga-role-name', 'viewer');
      expect(outputOf(await workspace.run(['up', ...unattended], mia))).toMatch(/\[403\]/);
      await workspace.runOk(['stack', 'output'], mia);
      await member('edit', 'mia', '--role', 'admin');
      await workspace.runOk(['up', ...unattended], mia);
      expect((await member('list')).stdout).toMatch(/mia\s.*admin/i);

      await member('remove', 'mia', '--yes');
      expect((await member('list')).stdout).not.toContain('mia');
      expect((await workspace.run(['stack', 'output'], mia)).exitCode).not.toBe(0);
      // Nobody else could let anybody in again.
      const [login = ''] = (await workspace.runOk(['whoami'])).stdout.trim().split('\n');
      await expectFailure(workspace, ['org', 'member', 'remove', login, '--yes', ...at], /\[409\].*last admin/);
    },
    scenarioTimeoutMs,
  );
});
