import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { callApiOk } from '../testkit/api-call.ts';
import { expectFailure, newProject, outputOf, Scenario, unattended } from '../testkit/scenario.ts';
import { fileServer, scenarioTimeoutMs, suite } from '../testkit/suite.ts';

await suite('pulumi org role', {}, () => {
  const server = fileServer();

  test(
    'makes, shows, changes, assigns and removes roles, and they decide what a team may do',
    async () => {
      const holdfast = await server();
      const { organization } = holdfast;
      await using scenario = await Scenario.create(holdfast);
      const { workspace } = scenario;
      const [team, roleName] = [newProject('team'), newProject('role')];
      await callApiOk(holdfast, 'POST', `orgs/${organization}/teams/pulumi`, { name: team });
      const { tokenValue } = await callApiOk(holdfast, 'POST', `orgs/${organization}/teams/${team}/tokens`, {
        name: 'ci',
      });
      const asTeam = { env: { PULUMI_ACCESS_TOKEN: tokenValue } };
      const at = ['--org', organization] as const;
      const role = async (...args: string[]) =>
        JSON.parse((await workspace.runOk(['org', 'role', ...args, ...at, '--output', 'json'])).stdout);
      const detailsFile = async (details: object): Promise<string> => {
        const file = join(workspace.dir, `${newProject('details')}.json`);
        await writeFile(file, JSON.stringify(details));
        return file;
      };
      const allow = (...permissions: string[]) => detailsFile({ __type: 'PermissionDescriptorAllow', permissions });

      const { roles } = await role('list');
      expect(roles.map(({ id }: { id: string }) => id).slice(0, 3)).toEqual(['viewer', 'member', 'admin']);
      const created = await role('new', roleName, await allow('stack:write', 'stack:decrypt'), '--description', 'd');
      expect(created).toMatchObject({ action: 'Created', role: { name: roleName, description: 'd', version: 1 } });
      const { id } = created.role as { id: string };
      expect((await workspace.runOk(['org', 'role', 'list', ...at])).stdout).toContain(roleName);

      await expectFailure(workspace, ['org', 'role', 'assign', 'none', team, ...at], /\[404\].*no role/);
      expect(await role('assign', id, team)).toMatchObject({ action: 'Assigned', team, roleId: id });
      await workspace.runOk(['up', ...unattended], asTeam);

      // The name alone: the permissions stay.
      expect(await role('edit', id, '--name', `${roleName}-2`)).toMatchObject({
        role: { version: 2, description: 'd' },
      });
      await workspace.runOk(['up', ...unattended], asTeam);
      await role('edit', id, '--details-file', await allow('stack:read', 'stack:decrypt'));
      expect(outputOf(await workspace.run(['up', ...unattended], asTeam))).toMatch(/\[403\].*needs the permission/);
      await workspace.runOk(['stack', 'output'], asTeam);

      const condition = await detailsFile({ __type: 'PermissionDescriptorCondition', condition: {}, subNode: {} });
      await expectFailure(
        workspace,
        ['org', 'role', 'new', newProject('role'), condition, ...at],
        /\[400\].*grants define/,
      );
      await expectFailure(workspace, ['org', 'role', 'edit', 'viewer', '--name', 'x', ...at], /\[409\].*built in/);
      await expectFailure(workspace, ['org', 'role', 'remove', id, '--yes', ...at], /\[409\].*--force/);
      await workspace.runOk(['org', 'role', 'remove', id, '--force', '--yes', ...at]);
      expect(outputOf(await workspace.run(['stack', 'output'], asTeam))).toMatch(/no stack|not found/i);
      expect((await role('list')).roles.map((each: { name: string }) => each.name)).not.toContain(`${roleName}-2`);
    },
    scenarioTimeoutMs,
  );
});
