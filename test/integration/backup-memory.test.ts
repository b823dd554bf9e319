import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';

const program = path.join(import.meta.dirname, '../support/many-blobs-process.ts');

test('the heap of a backup does not grow with the number of blobs', async () => {
  // Of which the program itself takes most.
  const args = ['--max-old-space-size=48', '--disable-warning=ExperimentalWarning', program, '100000'];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  expect(stdout).toBe('100000\n');
}, 240_000);
