import { expect, test } from '@jest/globals';
import { callApi } from '../testkit/api-call.ts';
import { startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { expectFailure, Scenario, unattended } from '../testkit/scenario.ts';
import { thingProgram } from '../testkit/stash-program.ts';
import { fileServer, scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { until } from '../testkit/until.ts';

await suite('requests above a limit', { ownServer: true }, () => {
  const server = fileServer(() => startOwnHoldfast({ HOLDFAST_REQUESTS_PER_MINUTE: '120' }, { prepared: true }));

  test(
    'a running update is completed, the next command says why it fails',
    async () => {
      const holdfast = await server();
      await using scenario = await Scenario.create(holdfast);
      const { workspace, project } = scenario;
      await workspace.writeProgram(thingProgram({ project, things: { a: { value: '1' }, b: { value: '2' } } }));
      await workspace.cloud.control({ slowMs: { '*.create': 600_000 } });
      const up = await workspace.spawn(['up', ...unattended]);
      await workspace.cloud.waitStarted('a', 'create', 120_000);
      const list = () => callApi(holdfast, 'GET', 'user/stacks');
      const spend = () => until(async () => (await list()).status === 429, 'the limit is reached');
      await spend();
      await workspace.cloud.control({});
      const stop = new AbortController();
      const flood = (async () => {
        while (!stop.signal.aborted) await list();
      })();
      const { exitCode } = await up.done;
      expect(exitCode).toBe(0);
      await expectFailure(workspace, ['stack', 'ls'], 'rate-limit exceeded');
      stop.abort();
      await flood;
      // A command makes several calls: without pauses, the first ones would always use up what has become free.
      const exports = async () => (await workspace.run(['stack', 'export'])).exitCode === 0;
      await until(exports, 'there is capacity again', { everyMs: 5_000 });
    },
    scenarioTimeoutMs,
  );
});
