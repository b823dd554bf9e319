import {
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { assertFileWritable } from './plan-report.ts';

const home = mkdtempSync(path.join(tmpdir(), 'holdfast-plan-report-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));

test('the check of a file for a plan leaves none behind, and leaves those that are there', async () => {
  const file = path.join(home, 'empty');
  const link = path.join(home, 'link');
  const plan = path.join(home, 'plan');
  writeFileSync(plan, '{}');
  writeFileSync(file, '', { mode: 0o600 });
  symlinkSync(file, link);
  const { ino } = statSync(file);
  for (const each of [path.join(home, 'new'), file, link, plan]) await assertFileWritable(each);
  expect(readdirSync(home).toSorted()).toEqual(['empty', 'link', 'plan']);
  expect(readFileSync(plan, 'utf8')).toBe('{}');
  expect([statSync(file).ino, lstatSync(link).isSymbolicLink()]).toEqual([ino, true]);
  await expect(assertFileWritable(path.join(home, 'none/plan'))).rejects.toThrow('ENOENT');
});
