import { expect, test } from '@jest/globals';
import { frameFilter, IndexWriter, parseIndex } from './segment-index.ts';

function indexOf(frames: readonly (readonly string[])[]) {
  const writer = new IndexWriter();
  let sequence = 0;
  for (const types of frames) {
    const heads = types.map((type) => ({ sequence: ++sequence, type, urn: null, start: 0, bytes: 2 }));
    writer.add({ text: Buffer.from('{}'), heads } as never, 2);
  }
  return parseIndex(JSON.stringify(writer.end().index));
}

const matching = (index: ReturnType<typeof indexOf>, ...types: string[]): boolean[] =>
  index.frames.map(frameFilter(index, { urn: null, types }));

test('a filter by type selects the frames that have events of this type', () => {
  const index = indexOf([['a', 'b'], ['', 'b'], []]);
  expect(matching(index, 'a')).toEqual([true, false, false]);
  expect(matching(index, 'b')).toEqual([true, true, false]);
  expect(matching(index, '')).toEqual([false, true, false]);
  expect(matching(index, 'c')).toEqual([false, false, false]);
});

test('the index of events of very many types stays small, and its filters miss no event', () => {
  const many = Array.from({ length: 20_000 }, (_, at) => `type-${at}`.padEnd(200, '-'));
  const index = indexOf([['first'], many, ['first']]);
  expect(index.types.length).toBeLessThanOrEqual(201);
  expect(JSON.stringify(index).length).toBeLessThan(60_000);
  for (const type of many) expect(matching(index, type)[1]).toBe(true);
  expect(matching(index, 'first')).toEqual([true, false, true]);
  expect(matching(index, 'never seen')[0]).toBe(false);
});
