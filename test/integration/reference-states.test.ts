import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { type KeptState, referenceStates } from '../../testkit/reference-states.ts';

const name = 'HOLDFAST_TEST_REFERENCES';
const own = process.env[name];
let directory: string;
beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'holdfast-references-'));
  process.env[name] = directory;
});
afterEach(() => {
  rmSync(directory, { recursive: true });
  if (own === undefined) delete process.env[name];
  else process.env[name] = own;
});

const statesOf = (project: string): KeptState[] => [{ label: 'created', state: { urn: `urn:pulumi:dev::${project}` } }];

test('equal scenarios are recorded once, and each caller gets the states of its own project', async () => {
  let records = 0;
  const ask = (steps: string, project: string) =>
    referenceStates([steps], project, async () => {
      records += 1;
      return statesOf(project);
    });
  const projects = ['twin-1', 'twin-2', 'twin-3'];
  expect(await Promise.all(projects.map((project) => ask('up', project)))).toEqual(projects.map(statesOf));
  expect(records).toBe(1);
  expect(await ask('destroy', 'twin-4')).toEqual(statesOf('twin-4'));
  expect(records).toBe(2);
});

test('a failed record is not kept', async () => {
  const failing = referenceStates(['up'], 'twin-1', () => Promise.reject(new Error('no disk')));
  await expect(failing).rejects.toThrow('no disk');
  expect(await referenceStates(['up'], 'twin-2', async () => statesOf('twin-2'))).toEqual(statesOf('twin-2'));
});
