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

  const defaultServer = fileServer<OwnHoldfastServer>(startOwnHoldfast);

  test.concurrent(
    'with default settings, the CLI sends journals, or whole documents when journaling is off',
    async () => {
      const holdfast = await defaultServer();
      await expectSameAsFileBackend(holdfast, changeSmallState);
      const journals = await holdfast.requestCounts();
      expect(allWrites.filter((write) => journals.count(`/${write}`) > 0)).toEqual(['journalentries']);
      await expectSameAsFileBackend(holdfast, changeSmallState, { env: { PULUMI_DISABLE_JOURNALING: 'true' } });
      const documents = await holdfast.requestCounts();
      expect(documents.count('/checkpoint')).toBeGreaterThan(0);
      expect(documents.count('/journalentries')).toBe(journals.count('/journalentries'));
    },
    scenarioTimeoutMs,
  );
});
