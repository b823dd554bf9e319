import { expect, test } from '@jest/globals';

import { type OwnHoldfastServer, startOwnHoldfast } from './support/holdfast-server.ts';
import { expectFailure, expectSameAsFileBackend, inOrder, type Scenario, unattended } from './support/scenario.ts';
import { reference, secret, type ThingInputs, thingProgram } from './support/stash-program.ts';
import { fileServer, scenarioTimeoutMs, suite } from './support/suite.ts';
import type { PulumiVersion } from './toolchain/recipes.ts';

type Mode = 'auto' | 'journal' | 'delta' | 'full';
type Write = 'journalentries' | 'checkpointdelta' | 'checkpointverbatim' | 'checkpoint';

/** By server mode and CLI, the calls that must carry state; no other may. */
const expected: readonly { mode: Mode; clis: readonly PulumiVersion[]; writes: readonly Write[] }[] = [
  { mode: 'journal', clis: ['3.255'], writes: ['journalentries'] },
  // Deltas are never the server's own choice: a CLI that sends them leaves pending operations out.
  { mode: 'auto', clis: ['3.200'], writes: ['checkpoint'] },
  { mode: 'delta', clis: ['3.255', '3.200'], writes: ['checkpointdelta', 'checkpointverbatim'] },
  { mode: 'full', clis: ['3.255'], writes: ['checkpoint'] },
];
const allWrites: readonly Write[] = ['journalentries', 'checkpointdelta', 'checkpointverbatim', 'checkpoint'];

/** More than 1 MiB, the size from which deltas are sent, full of characters that are several bytes. */
async function changeLargeState(scenario: Scenario): Promise<void> {
  const { workspace, project } = scenario;
  const things = (value: string): { [name: string]: ThingInputs } => ({
    a: { value, size: 400_000 },
    b: { value: reference('a', 'value'), size: 400_000, secretValue: secret('hush é 😀') },
    c: { value: reference('b', 'value'), size: 400_000 },
    d: { value: reference('c', 'value'), replaceOn: reference('c', 'value') },
    e: { value: reference('d', 'value'), replaceOn: reference('d', 'value'), deleteBeforeReplace: true },
  });
  const write = (value: string): Promise<void> =>
    workspace.writeProgram(thingProgram({ project, things: things(value) }));
  await write('one');
  await workspace.runOk(['up', ...inOrder]);
  await scenario.keepInOrder('created');
  await write('zwei 漢字 <&> 😀');
  await workspace.cloud.control({ failDelete: ['d'] });
  await expectFailure(workspace, ['up', ...inOrder], 'told to fail');
  await scenario.keep('one delete failed');
  await workspace.cloud.control({});
  await workspace.cloud.edit('b-1', { value: 'drifted' });
  await workspace.runOk(['up', '--refresh', ...inOrder]);
}

async function changeSmallState({ workspace, project }: Scenario): Promise<void> {
  const a = { value: '1', secretValue: secret('hush') };
  await workspace.writeProgram(thingProgram({ project, things: { a, b: { value: reference('a', 'value') } } }));
  await workspace.runOk(['up', ...unattended]);
  await workspace.writeProgram(thingProgram({ project, things: { a } }));
  await workspace.runOk(['up', ...unattended]);
}

await suite('servers in each mode', {
  ownServer: true,
  tools: ['pulumi-3.255', 'pulumi-3.200', 'test-provider'],
}, () => {
  for (const { mode, clis, writes } of expected) {
    const server = fileServer<OwnHoldfastServer>(() => startOwnHoldfast({ HOLDFAST_CHECKPOINT_MODE: mode }));

    test.concurrent(
      `with ${mode}, the CLI ${clis.join(' and ')} sends its state by ${writes.join(' and ')}, and nothing is refused`,
      async () => {
        const holdfast = await server();
        await Promise.all(clis.map((cli) => expectSameAsFileBackend(holdfast, changeLargeState, { cli })));
        const counts = await holdfast.requestCounts();
        const used = allWrites.filter((write) => counts.count(`/${write}`) > 0);
        expect(used.sort()).toEqual([...writes].sort());
        for (const write of allWrites) expect(counts.count(`/${write}`, (status) => status >= 400)).toBe(0);
        expect(counts.failures((status) => status >= 500)).toEqual([]);
        expect(holdfast.faults()).toEqual([]);
      },
      scenarioTimeoutMs,
    );
  }

  const defaultServer = fileServer<OwnHoldfastServer>(startOwnHoldfast);

  test.concurrent(
    'with default settings, the CLI sends journals, or whole documents when it is told not to',
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
