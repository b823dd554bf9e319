import { expect, test } from '@jest/globals';
import { type OwnHoldfastServer, startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { expectSameAsFileBackend, type Scenario, unattended } from '../testkit/scenario.ts';
import { reference, secret, thingProgram } from '../testkit/stash-program.ts';
import { fileServer, scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { allWrites, testModes } from './checkpoint-modes-suite.ts';

async function changeSmallState({ workspace, project }: Scenario): Promise<void> {
  const a = { value: '1', secretValue: secret('hush') };
  await workspace.writeProgram(thingProgram({ project, things: { a, b: { value: reference('a', 'value') } } }));
  await workspace.runOk(['up', ...unattended]);
  await workspace.writeProgram(thingProgram({ project, things: { a } }));
  await workspace.runOk(['up', ...unattended]);
}

await suite('servers in each mode', { ownServer: true }, () => {
  testModes('3.276', [
    { mode: 'journal', writes: ['journalentries'] },
    { mode: 'delta', writes: ['checkpointdelta', 'checkpointverbatim'] },
    { mode: 'full', writes: ['checkpoint'] },
  ]);

  const defaultServer = fileServer<OwnHoldfastServer>(() => startOwnHoldfast({}, { prepared: true }));

  test.concurrent(
    'with default settings, the CLI sends journals, or whole documents when journaling is off',
    async () => {
      const holdfast = await defaultServer();
      await expectSameAsFileBackend(holdfast, changeSmallState);
      const journals = await holdfast.requestCounts();
      expect(allWrites.filter((write) => journals.count(`/${write}`) > 0)).toEqual(['journalentries']);
      expect(journals.count('/begin-update')).toBeGreaterThan(0);
      // Older CLIs, and this one if told so, create and start updates by two calls.
      await expectSameAsFileBackend(holdfast, changeSmallState, { env: { PULUMI_DISABLE_BEGIN_UPDATE: 'true' } });
      const byTwoCalls = await holdfast.requestCounts();
      expect(byTwoCalls.count('/begin-update')).toBe(journals.count('/begin-update'));
      expect(byTwoCalls.count('/journalentries')).toBeGreaterThan(journals.count('/journalentries'));
      await expectSameAsFileBackend(holdfast, changeSmallState, { env: { PULUMI_DISABLE_JOURNALING: 'true' } });
      const documents = await holdfast.requestCounts();
      expect(documents.count('/checkpoint')).toBeGreaterThan(0);
      expect(documents.count('/journalentries')).toBe(byTwoCalls.count('/journalentries'));
    },
    scenarioTimeoutMs,
  );
});
