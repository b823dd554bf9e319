import { expect, test } from '@jest/globals';

import { type OwnHoldfastServer, startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { expectFailure, expectSameAsFileBackend, inOrder, type Scenario } from '../testkit/scenario.ts';
import { reference, secret, type ThingInputs, thingProgram } from '../testkit/stash-program.ts';
import { fileServer, scenarioTimeoutMs } from '../testkit/suite.ts';
import type { PulumiVersion } from '../testkit/toolchain/recipes.ts';

type Mode = 'auto' | 'journal' | 'delta' | 'full';
type Write = 'journalentries' | 'checkpointdelta' | 'checkpointverbatim' | 'checkpoint';

/** By server mode, the calls that must carry the state of a CLI; no other call may. */
export type ModeTable = readonly { mode: Mode; writes: readonly Write[] }[];

/** Every call that carries state. */
export const allWrites: readonly Write[] = ['journalentries', 'checkpointdelta', 'checkpointverbatim', 'checkpoint'];

/** More than 1 MiB, the size from which deltas are sent, full of multi-byte characters. */
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

/** Defines a test for each mode of the table, with its own server. */
export function testModes(cli: PulumiVersion, expected: ModeTable): void {
  for (const { mode, writes } of expected) {
    const server = fileServer<OwnHoldfastServer>(() =>
      startOwnHoldfast({ HOLDFAST_CHECKPOINT_MODE: mode }, { prepared: true }),
    );

    test.concurrent(
      `with ${mode}, the CLI ${cli} sends its state by ${writes.join(' and ')}, and nothing is rejected`,
      async () => {
        const holdfast = await server();
        await expectSameAsFileBackend(holdfast, changeLargeState, { cli });
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
}
