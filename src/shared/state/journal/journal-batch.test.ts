import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { PayloadTooLargeError } from '../../platform/errors/errors.ts';
import { InvalidJournalBatchError, splitJournalBatch } from './journal-batch.ts';

async function split(body: string): Promise<[number, string][]> {
  return (await splitJournalBatch(Buffer.from(body))).map(({ sequenceId, text }) => [
    sequenceId,
    text.toString('utf8'),
  ]);
}

describe('splitJournalBatch', () => {
  test('returns every entry byte for byte, in the order of the body', async () => {
    const first = '{ "kind":0,"sequenceID": 7 ,"x":{"sequenceID":"no","entries":[1e21]},"é":"\\u0041"}';
    const second = '{"sequenceID":3,"kind":77,"sequenceID":4}';
    expect(await split(`{"other":[{}], "entries" : [ ${first} ,\n${second},${first}]}`)).toEqual([
      [7, first],
      [4, second],
      [7, first],
    ]);
  });

  test('distinguishes begin entries and migrations from all others', async () => {
    const entries = [0, 1, 10].map((kind, at) => `{"kind":${kind},"sequenceID":${at + 1},"operation":{"kind":0}}`);
    const batch = await splitJournalBatch(Buffer.from(`{"entries":[${entries},{"kind":1,"kind":0,"sequenceID":4}]}`));
    expect(batch.map(({ isBegin }) => isBegin)).toEqual([true, false, false, true]);
    expect(batch.map(({ isMigration }) => isMigration)).toEqual([false, false, true, false]);
  });

  test('accepts an empty batch', async () => {
    expect(await split('{"entries":[]}')).toEqual([]);
  });

  test('uses the last of repeated members', async () => {
    expect(await split('{"entries":[{"sequenceID":1,"kind":0}],"entries":[{"sequenceID":2,"kind":0}]}')).toEqual([
      [2, '{"sequenceID":2,"kind":0}'],
    ]);
  });

  test.each([
    '{}',
    '[]',
    '"x"',
    '',
    '{"entries":[{"sequenceID":1,"kind":0}]',
    '{"entries":null}',
    '{"entries":{"a":{"sequenceID":1,"kind":0}}}',
  ])('rejects a body that is not a batch: %s', async (body) => {
    await expect(split(body)).rejects.toEqual(
      expect.objectContaining({ name: 'InvalidJournalBatchError', index: null }),
    );
  });

  test.each(['0', '-1', '1.0', '1e0', '"1"', 'null', '9007199254740992', '{}'])('rejects sequenceID %s', async (id) => {
    const body = `{"entries":[{"sequenceID":1,"kind":0},{"kind":0,"sequenceID":${id}}]}`;
    await expect(split(body)).rejects.toEqual(expect.objectContaining({ name: 'InvalidJournalBatchError', index: 1 }));
  });

  test.each(['3', '-1', '1.5', '"2"', '[1]', '1000000000'])('rejects version %s', async (version) => {
    const body = `{"entries":[{"version":2,"sequenceID":1,"kind":0},{"version":${version},"sequenceID":2,"kind":0}]}`;
    await expect(split(body)).rejects.toEqual(expect.objectContaining({ name: 'InvalidJournalBatchError', index: 1 }));
  });

  test.each(['-1', '1.0', '1e0', '"1"', 'null', '1000000000', '[0]', '{"kind":0}'])('rejects kind %s', async (kind) => {
    const body = `{"entries":[{"sequenceID":1,"kind":0},{"sequenceID":2,"kind":${kind}}]}`;
    await expect(split(body)).rejects.toEqual(expect.objectContaining({ name: 'InvalidJournalBatchError', index: 1 }));
  });

  test.each([
    '{}',
    'null',
    '[1]',
    '{"x":{"sequenceID":1,"kind":0}}',
    '{"sequenceID":1}',
    '{"sequenceID":1,"x":{"kind":0}}',
    '{"kind":0}',
  ])('rejects the entry %s', async (entry) => {
    const body = `{"entries":[{"sequenceID":1,"kind":0},{"sequenceID":2,"kind":0},${entry}]}`;
    await expect(split(body)).rejects.toEqual(expect.objectContaining({ name: 'InvalidJournalBatchError', index: 2 }));
  });

  test('rejects a batch at its 10,001st entry, without reading the rest', async () => {
    const entries = (count: number): string => Array(count).fill('{"sequenceID":1,"kind":0}').join(',');
    expect(await split(`{"entries":[${entries(10_000)}]}`)).toHaveLength(10_000);
    await expect(split(`{"entries":[${entries(10_001)}, no JSON`)).rejects.toThrow(PayloadTooLargeError);
  });

  test('rejects several entries of more than 16 MiB in total, but accepts a single one', async () => {
    const entry = `{"sequenceID":1,"kind":5,"newSnapshot":"${'x'.repeat(16 * 1024 * 1024)}"}`;
    expect(await split(`{"entries":[${entry}]}`)).toHaveLength(1);
    await expect(split(`{"entries":[${entry},{"sequenceID":2,"kind":0}, no JSON`)).rejects.toThrow(
      PayloadTooLargeError,
    );
  });

  test('throws nothing but InvalidJournalBatchError', async () => {
    await fc.assert(
      fc.asyncProperty(fc.json(), async (entries) => {
        try {
          await split(`{"entries":${entries}}`);
        } catch (error) {
          expect(error).toBeInstanceOf(InvalidJournalBatchError);
        }
      }),
    );
  });
});
