import { describe, expect, test } from '@jest/globals';
import { replayJournal } from '../../../../../test/support/replay-journal.ts';
import type { BatchEntry } from '../journal-batch.ts';
import { readBegin, refusedEntry } from './begin-entry.ts';

const resource = {
  urn: 'urn:pulumi:dev::p::aws:rds/instance:Instance::db',
  type: 'aws:rds/instance:Instance',
  custom: true,
};
const begin = (fields: object): BatchEntry => ({
  sequenceId: 7,
  isBegin: true,
  isMigration: false,
  text: Buffer.from(JSON.stringify({ version: 1, kind: 0, sequenceID: 7, operationID: 3, ...fields })),
});

describe('readBegin', () => {
  test('reads the operation and the resource of each begin entry', async () => {
    expect(await readBegin(begin({ operation: { resource, type: 'deleting' } }))).toEqual({
      sequenceId: 7,
      operationId: 3,
      type: 'deleting',
      urn: resource.urn,
      resourceType: resource.type,
      isManaged: true,
    });
  });

  test.each([
    ['a component', { ...resource, custom: false }],
    ['a resource that is only read', { ...resource, external: true }],
    ['a provider', { ...resource, type: 'pulumi:providers:aws' }],
  ])('%s is managed by no provider', async (_, other) => {
    const { isManaged } = await readBegin(begin({ operation: { resource: other, type: 'deleting' } }));
    expect(isManaged).toBe(false);
  });

  test.each([
    {},
    { operation: null },
    { operation: [] },
    { operation: { type: 5, resource: 'x' } },
    { operationID: '3' },
    // Names that look like a path to another member.
    { 'operation.type': 'deleting', 'operation.resource': resource },
    { operation: { 'resource.urn': 'u', 'resource.type': 't', 'resource.custom': true } },
  ])('reads fields of a wrong type as missing: %j', async (fields) => {
    expect(await readBegin(begin(fields))).toMatchObject({ type: null, urn: '', resourceType: '', isManaged: false });
  });
});

test('a refused entry takes the number of the entry and adds no pending operation', async () => {
  const entry = begin({ operation: { resource, type: 'creating' } });
  const manifest = { time: '2026-01-01T00:00:00Z', version: '' };
  const pendingWith = (one: BatchEntry) => replayJournal(null, [one], manifest).pendingOperationCount;
  expect(pendingWith(entry)).toBe(1);
  const refused = refusedEntry(await readBegin(entry));
  expect(refused.sequenceId).toBe(7);
  expect(pendingWith(refused)).toBe(0);
});
