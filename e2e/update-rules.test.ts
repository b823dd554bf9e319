import { expect, test } from '@jest/globals';

import { expectFailure, Scenario, unattended } from '../testkit/scenario.ts';
import { stashProgram } from '../testkit/stash-program.ts';
import { fileServer, scenarioTimeoutMs, suite } from '../testkit/suite.ts';

await suite('rules for updates', {}, () => {
  const server = fileServer();

  test(
    'the CLI shows why a stack is frozen, still previews, and breaks the glass by its message',
    async () => {
      const { organization, token, url } = await server();
      await using scenario = await Scenario.create(await server());
      const { workspace, project } = scenario;
      const call = (method: string, path: string, body?: object) =>
        fetch(`${url}/api/orgs/${organization}/update-rules${path}`, {
          method,
          headers: {
            authorization: `token ${token}`,
            accept: 'application/vnd.pulumi+8',
            'content-type': 'application/json',
          },
          ...(body ? { body: JSON.stringify(body) } : {}),
        });
      await workspace.writeProgram(stashProgram({ project, count: 2 }));
      const rule = { kind: 'freeze', project, stack: 'dev', settings: { until: '2099-01-01T00:00:00Z' }, note: 'Sale' };
      const set = await call('POST', '', rule);
      expect(set.status).toBe(200);
      const { id } = (await set.json()) as { id: string };
      const frozen = new RegExp(
        `\\[409\\] Frozen: updates of stack ${project}/dev are not allowed until 2099-.*: Sale\\.`,
      );
      await expectFailure(workspace, ['up', ...unattended], frozen);
      await workspace.runOk(['preview', '--non-interactive']);
      await workspace.runOk(['up', ...unattended, '--message', 'break-glass: the shop is down']);
      await expectFailure(workspace, ['stack', 'rm', '--force', '--yes', '--non-interactive'], frozen);
      expect((await call('DELETE', `/${id}`)).status).toBe(204);
      await workspace.runOk(['stack', 'rm', '--force', '--yes', '--non-interactive']);
    },
    scenarioTimeoutMs,
  );
});
