import { expect, test } from '@jest/globals';
import { Value } from 'typebox/value';
import { serverSource } from '../audit/audit-event.ts';
import { compactJournal, Job, renameStack, snapshotJournal } from './job-list.ts';

const updateId = '7e1b4a52-0d0c-4d7a-9a0d-2f5a3a1f7b10';
const stackId = '0f0a7a0e-52a6-4a0e-8f0b-0f6f6f0c1d2e';
const fence = { updateId, stackId, epoch: 3 };
const body = { payloadKey: 'b5a1', encoding: 'gzip' };
const admission = { stackVersion: 4, checkpointId: null, deadline: '2026-01-01T00:00:00.000Z' };
const change = { stackId, updateId, requestedBy: 'u1', tokenId: 't1', source: serverSource, admission };
const from = { organization: 'acme', project: 'shop', stack: 'dev' };
const to = { ...from, stack: 'prod' };

/** Jobs as releases that share a queue write them. */
const queued = [
  { name: 'apply-checkpoint', schema: 1, kind: 'full', dialect: 'pulumi', fence, arrivalSequence: 7, ...body },
  { name: 'apply-checkpoint', schema: 1, kind: 'delta', dialect: 'contract', fence, arrivalSequence: null, ...body },
  { name: 'append-journal', schema: 1, fence, ...body },
  { name: 'append-events', schema: 1, fence, ...body },
  { name: 'import-deployment', schema: 1, ...change, ...body },
  { name: 'rename-stack', schema: 1, ...change, from, to },
  { name: 'compact-journal', schema: 1, updateId },
  { name: 'snapshot-journal', schema: 1, updateId },
];

test.each(queued.map((job) => [job.name, job] as const))('%s is accepted as queued', (_name, job) => {
  expect(Value.Check(Job, job)).toBe(true);
  expect(Value.Check(Job, JSON.parse(JSON.stringify(job)))).toBe(true);
});

test.each(queued.map((job) => [job.name, job] as const))('%s of a later schema is not accepted', (_name, job) => {
  const newest = Math.max(...queued.filter(({ name }) => name === job.name).map(({ schema }) => schema));
  expect(Value.Check(Job, { ...job, schema: newest + 1 })).toBe(false);
});

test('an import without an admission is not accepted', () => {
  const { admission: _admission, ...target } = change;
  expect(Value.Check(Job, { name: 'import-deployment', schema: 1, ...target, ...body })).toBe(false);
});

test('a job without its body, with an unknown encoding or with an unknown name is not accepted', () => {
  expect(Value.Check(Job, { name: 'append-journal', schema: 1, fence })).toBe(false);
  expect(Value.Check(Job, { name: 'append-journal', schema: 1, fence, ...body, encoding: 'br' })).toBe(false);
  expect(Value.Check(Job, { name: 'drop-stack', schema: 1, updateId })).toBe(false);
});

test('jobs are created with their name and the newest schema', () => {
  expect(compactJournal.create({ updateId })).toEqual({ name: 'compact-journal', schema: 1, updateId });
  expect(snapshotJournal.create({ updateId })).toEqual({ name: 'snapshot-journal', schema: 1, updateId });
  expect(renameStack.create({ ...change, from, to })).toEqual({ name: 'rename-stack', schema: 1, ...change, from, to });
});
