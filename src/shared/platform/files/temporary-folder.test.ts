import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { largeTemporaryFolder, tmpfs } from './temporary-folder.ts';

test.each([
  ['is on a disk', { inMemory: [], isDiskThere: true }, 'given'],
  ['is in memory', { inMemory: ['given'], isDiskThere: true }, 'disk'],
  ['is in memory without a folder on a disk', { inMemory: ['given'], isDiskThere: false }, 'given'],
  ['and the other one are in memory', { inMemory: ['given', 'disk'], isDiskThere: true }, 'given'],
])('large files of a machine whose folder for temporary files %s are in %j: %s', async (_, machine, expected) => {
  const home = mkdtempSync(path.join(tmpdir(), 'holdfast-temporary-'));
  const names = new Map([
    [home, 'given'],
    [machine.isDiskThere ? tmpdir() : path.join(home, 'missing'), 'disk'],
  ]);
  const [, disk] = [...names.keys()];
  const typeOf = async (folder: string) => (machine.inMemory.includes(names.get(folder) ?? '') ? tmpfs : 0xef53);
  const found = await largeTemporaryFolder(home, { ...(disk ? { disk } : {}), typeOf });
  expect(names.get(found)).toBe(expected);
  rmSync(home, { recursive: true });
});
