import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { decodeJsonString, decodeStringInSlices } from '../json/json-strings.ts';
import { parseInSlices } from '../json/parse-in-slices.ts';
import { inSlices, scanInSlices, timeSliceBytes } from './slices.ts';

/** Also returns how many event loop ticks passed meanwhile. */
async function countSlices<T>(work: () => Promise<T>): Promise<{ result: T; slices: number }> {
  let slices = 0;
  let next = setImmediate(function count() {
    slices += 1;
    next = setImmediate(count);
  });
  try {
    return { result: await work(), slices };
  } finally {
    clearImmediate(next);
  }
}

describe('work over many bytes', () => {
  test('is split into ticks of 1 MiB', async () => {
    const chunkSizes: number[] = [];
    const bytes = Buffer.alloc(5 * timeSliceBytes + 1);
    const { slices } = await countSlices(() => scanInSlices({ write: ({ length }) => chunkSizes.push(length) }, bytes));
    expect(Math.max(...chunkSizes)).toBe(timeSliceBytes);
    expect(chunkSizes.reduce((sum, length) => sum + length)).toBe(bytes.length);
    expect(slices).toBeGreaterThanOrEqual(5);
  });

  test('is split when it streams in, in one chunk or in many', async () => {
    for (const parts of [
      [Buffer.alloc(4 * timeSliceBytes)],
      Array.from({ length: 64 }, () => Buffer.alloc(timeSliceBytes / 16)),
    ]) {
      const { slices } = await countSlices(async () => {
        for await (const slice of inSlices(parts)) expect(slice.length).toBeLessThanOrEqual(timeSliceBytes);
      });
      expect(slices).toBeGreaterThanOrEqual(3);
    }
  });

  test('finishes small work in the current tick', async () => {
    const { slices } = await countSlices(() => parseInSlices(Buffer.from('{"a":[1,2]}')));
    expect(slices).toBe(0);
  });
});

describe('parsing in slices', () => {
  const filler = 'x'.repeat(timeSliceBytes / 2);
  test.each([
    [
      'an object of many members',
      JSON.stringify(Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`k${i}`, filler]))),
    ],
    [
      'an object in an object',
      JSON.stringify({ first: 1, config: { a: filler, b: [filler], c: { d: filler } }, last: null }),
    ],
    ['an array with one large element', JSON.stringify([1, { a: filler, b: filler, c: [filler] }, [], 'z'])],
    [
      'names that have escapes, and blanks',
      ` { "a\\"\\\\" : {"é":"${filler}${filler}","__proto__":{"x":1}} ,\n"__proto__" : [1] , "b":[ ] } `,
    ],
    ['a string', JSON.stringify(filler + filler + filler)],
    ['members that repeat', `{"a":"${filler}","a":{"b":"${filler}${filler}"},"c":1,"a":2}`],
  ])('returns the same as JSON.parse: %s', async (_name, text) => {
    const { result } = await countSlices(() => parseInSlices(Buffer.from(text)));
    expect(JSON.stringify(result)).toBe(JSON.stringify(JSON.parse(text)));
  });

  test('yields between the members of a large body', async () => {
    const text = Buffer.from(
      JSON.stringify({ metadata: Object.fromEntries(Array.from({ length: 8 }, (_, i) => [i, filler])) }),
    );
    const { slices } = await countSlices(() => parseInSlices(text));
    // Counted, scanned twice and parsed.
    expect(slices).toBeGreaterThanOrEqual(12);
  });
});

test('decoding a large string in slices gives the same result as decoding it at once', async () => {
  const parts = [
    'a',
    'é',
    '日',
    '😀',
    '\\n',
    '\\u00e9',
    '\\ud83d\\ude00',
    '\\ud83d',
    '\\\\',
    '\\"',
    'plain text of some length',
  ];
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom(...parts), { minLength: 1, maxLength: 12 }), async (pattern) => {
      const unit = pattern.join('');
      const inner = unit.repeat(Math.ceil((2.2 * timeSliceBytes) / Buffer.byteLength(unit)));
      const text = Buffer.from(`"${inner}"`);
      const { result, slices } = await countSlices(() => decodeStringInSlices(text, 0, text.length));
      expect(result.equals(Buffer.from(decodeJsonString(text, 0, text.length)))).toBe(true);
      expect(slices).toBeGreaterThanOrEqual(2);
    }),
    { numRuns: 12 },
  );
});
