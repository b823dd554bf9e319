import { suite } from '../testkit/suite.ts';
import { testModes } from './checkpoint-modes-suite.ts';

await suite('servers in each mode, with the old CLI', {
  ownServer: true,
  tools: ['pulumi-3.142', 'test-provider'],
}, () => {
  testModes('3.142', [
    // The server never chooses deltas itself: a CLI that sends them leaves out pending operations.
    { mode: 'auto', writes: ['checkpoint'] },
    { mode: 'delta', writes: ['checkpointdelta', 'checkpointverbatim'] },
  ]);
});
