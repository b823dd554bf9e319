import { expect, test } from '@jest/globals';

import { Scenario, unattended } from '../testkit/scenario.ts';
import { stashProgram } from '../testkit/stash-program.ts';
import { fileServer, scenarioTimeoutMs, suite } from '../testkit/suite.ts';

/** Updates of one stack at once. HOLDFAST_TEST_QUEUED_UPDATES sets another number. */
const updateCount = Number(process.env['HOLDFAST_TEST_QUEUED_UPDATES'] ?? 6);

await suite('updates that wait for their stack', {}, () => {
  const server = fileServer();

  test(
    'all updates of one stack at once succeed, one after another',
    async () => {
      await using scenario = await Scenario.create(await server());
      const { workspace, project } = scenario;
      await workspace.writeProgram(stashProgram({ project, count: 2 }));
      await workspace.runOk(['stack', 'tag', 'set', 'lock-wait', '1h']);
      const runs = await Promise.all(
        Array.from({ length: updateCount }, () => workspace.runOk(['up', '--skip-preview', ...unattended])),
      );
      expect(runs.filter(({ stdout, stderr }) => /Waited \d+ (s|min)/.test(stdout + stderr)).length).toBeGreaterThan(0);
      const history = JSON.parse((await workspace.runOk(['stack', 'history', '--json', '--page-size', '1000'])).stdout);
      expect(history.map(({ result, version }: { result: string; version: number }) => [version, result])).toEqual(
        Array.from({ length: updateCount }, (_, at) => [updateCount - at, 'succeeded']),
      );
    },
    scenarioTimeoutMs,
  );
});
