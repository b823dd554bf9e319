import { expect, test } from '@jest/globals';

import { type OwnHoldfastServer, startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { expectFailure, Scenario, unattended } from '../testkit/scenario.ts';
import { thingProgram } from '../testkit/stash-program.ts';
import { fileServer, scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { until } from '../testkit/until.ts';
import { readMetric, readWaiting, testSuperseding } from './update-queue-suite.ts';

await suite('calls that wait longer than one is held', { ownServer: true }, () => {
  const server = fileServer<OwnHoldfastServer>(() =>
    startOwnHoldfast({ HOLDFAST_LOCK_WAIT_SECONDS: '3600', HOLDFAST_LONG_POLL_SECONDS: '2' }, { prepared: true }),
  );

  test(
    'the CLI calls again at its place, a killed one loses it, and one that gave up says who holds the stack',
    async () => {
      const holdfast = await server();
      await using scenario = await Scenario.create(holdfast);
      const { workspace, project } = scenario;
      const waiting = () => readWaiting(holdfast);
      const redirects = () => readMetric(holdfast, /^holdfast_http_request_seconds_count\{.*status="307"/);

      await workspace.writeProgram(thingProgram({ project, things: { a: { value: '1' } } }));
      await workspace.cloud.control({ slowMs: { 'a.create': 600_000 } });
      const up = ['up', '--skip-preview', ...unattended];
      // It holds the stack for as long as the others need.
      const first = await workspace.spawn(up);
      await workspace.cloud.waitStarted('a', 'create', 120_000);
      const killed = await workspace.spawn(up);
      await until(async () => (await waiting()) === 1, 'the call waits');
      await killed.killAll();
      await until(async () => (await waiting()) === 0, 'its place is free');
      await workspace.runOk(['stack', 'tag', 'set', 'lock-wait', '1s']);
      await expectFailure(
        workspace,
        up,
        /\[409\] Conflict: Another update is currently in progress\. ada's update has held the stack since .*position 1/s,
      );
      await workspace.runOk(['stack', 'tag', 'set', 'lock-wait', '1h']);
      const before = await redirects();
      const second = await workspace.spawn(up);
      await until(async () => (await redirects()) >= before + 2, 'it has called again');
      await workspace.cloud.control({});
      expect(await first.done).toMatchObject({ exitCode: 0 });
      const { exitCode, stderr, stdout } = await second.done;
      expect({ exitCode, said: /Waited \d+ (s|min)/.test(stdout + stderr) }).toEqual({ exitCode: 0, said: true });
    },
    scenarioTimeoutMs,
  );

  testSuperseding(server, '3.276');
});
