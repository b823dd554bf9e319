import { gzipSync } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { until } from '../../../../testkit/until.ts';
import { bytesOf } from '../bytes/byte-source.ts';
import { InvalidRequestError, PayloadTooLargeError } from '../errors/errors.ts';
import { inflate, inflateWhole } from './inflate.ts';

const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 400 }).map((array) => Buffer.from(array)),
  // Compresses well, and is longer than the chunks in which it is inflated.
  fc
    .tuple(fc.integer({ min: 0, max: 300_000 }), fc.nat({ max: 255 }))
    .map(([length, byte]) => Buffer.alloc(length, byte)),
);
const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 30 });

function cut(text: Buffer, lengths: readonly number[]): Buffer[] {
  const chunks: Buffer[] = [];
  let from = 0;
  for (const length of lengths) {
    chunks.push(text.subarray(from, from + length));
    from += length;
  }
  chunks.push(text.subarray(from));
  return chunks;
}

async function collect(source: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of source) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** The inflated bytes as hex, or the name of the error. */
const outcome = (work: Promise<Buffer>): Promise<string> =>
  work.then(
    (inflated) => inflated.toString('hex'),
    (error: unknown) => (error as Error).name,
  );

/** Limits up to which a body in memory is inflated in this thread, in another one, and as a stream. */
const limitsFor = (size: number): number[] => [Math.max(size, 1), 1_000_000, 9_000_000];

describe('inflating', () => {
  test('returns what was compressed, however it is split, up to the limit and not a byte beyond', async () => {
    await fc.assert(
      fc.asyncProperty(bytes, sizes, fc.integer({ min: -3, max: 3 }), async (text, lengths, slack) => {
        const maxBytes = Math.max(1, text.length + slack);
        const expected = text.length > maxBytes ? 'PayloadTooLargeError' : text.toString('hex');
        const gzip = gzipSync(text);
        expect(await outcome(collect(inflate(bytesOf(...cut(gzip, lengths)), 'gzip', maxBytes)))).toBe(expected);
        expect(await outcome(inflateWhole(gzip, 'gzip', maxBytes))).toBe(expected);
        expect(await outcome(collect(inflate(bytesOf(...cut(text, lengths)), 'identity', maxBytes)))).toBe(expected);
        expect(await outcome(inflateWhole(text, 'identity', maxBytes))).toBe(expected);
      }),
      { numRuns: 150 },
    );
  });

  test('yields no more bytes than the limit before it throws', async () => {
    let yielded = 0;
    const bomb = gzipSync(Buffer.alloc(20_000_000));
    const read = async (): Promise<void> => {
      for await (const chunk of inflate(bytesOf(bomb), 'gzip', 1_000_000)) yielded += chunk.length;
    };
    await expect(read()).rejects.toThrow(PayloadTooLargeError);
    expect(yielded).toBeLessThanOrEqual(1_000_000);
  });

  test('joins several gzip members into one text, wherever they are split', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(bytes, { minLength: 1, maxLength: 3 }), sizes, async (texts, lengths) => {
        const gzip = Buffer.concat(texts.map((text) => gzipSync(text)));
        const whole = Buffer.concat(texts).toString('hex');
        for (const limit of limitsFor(whole.length / 2)) {
          expect(await outcome(inflateWhole(gzip, 'gzip', limit))).toBe(whole);
        }
        expect(await outcome(collect(inflate(bytesOf(...cut(gzip, lengths)), 'gzip', 1_000_000)))).toBe(whole);
        const members = texts.map((text) => gzipSync(text));
        expect(await outcome(collect(inflate(bytesOf(...members), 'gzip', 1_000_000)))).toBe(whole);
      }),
      { numRuns: 80 },
    );
  });

  test('rejects truncated gzip, as a stream and in memory', async () => {
    await fc.assert(
      fc.asyncProperty(bytes, sizes, fc.nat(), async (text, lengths, at) => {
        const gzip = gzipSync(text);
        const part = gzip.subarray(0, at % gzip.length);
        for (const limit of limitsFor(text.length)) {
          expect(await outcome(inflateWhole(part, 'gzip', limit))).toBe('InvalidRequestError');
        }
        expect(await outcome(collect(inflate(bytesOf(...cut(part, lengths)), 'gzip', 1_000_000)))).toBe(
          'InvalidRequestError',
        );
      }),
      { numRuns: 150 },
    );
  });

  test('never reads garbage after the end as part of the text', async () => {
    await fc.assert(
      fc.asyncProperty(bytes, fc.uint8Array({ minLength: 1, maxLength: 40 }), sizes, async (text, tail, lengths) => {
        const gzip = Buffer.concat([gzipSync(text), tail]);
        // As in gzip itself, a zero after a member starts padding; zlib ignores what follows.
        const expected = tail[0] === 0 ? text.toString('hex') : 'InvalidRequestError';
        for (const limit of limitsFor(text.length)) {
          expect(await outcome(inflateWhole(gzip, 'gzip', limit))).toBe(expected);
        }
        const streamed = await outcome(collect(inflate(bytesOf(...cut(gzip, lengths)), 'gzip', 1_000_000)));
        expect([expected, text.toString('hex'), 'InvalidRequestError']).toContain(streamed);
      }),
      { numRuns: 150 },
    );
  });

  test('rethrows an error of the source unchanged', async () => {
    const fault = new TypeError('the disk is gone');
    for (const encoding of ['gzip', 'identity'] as const) {
      const source = async function* (): AsyncGenerator<Buffer> {
        yield gzipSync('x').subarray(0, 12);
        throw fault;
      };
      await expect(collect(inflate(source, encoding, 100))).rejects.toBe(fault);
    }
  });

  test('ends the source when the reader stops early', async () => {
    let ended = false;
    const source = async function* (): AsyncGenerator<Buffer> {
      try {
        const gzip = gzipSync(Buffer.alloc(5_000_000), { level: 0 });
        for (let at = 0; at < gzip.length; at += 65_536) yield gzip.subarray(at, at + 65_536);
      } finally {
        ended = true;
      }
    };
    for await (const chunk of inflate(source, 'gzip', 10_000_000)) {
      expect(chunk.length).toBeGreaterThan(0);
      break;
    }
    await until(() => ended, 'the source has ended');
  });

  test('throws an error that is reported to the client', async () => {
    await expect(inflateWhole(Buffer.from('no gzip'), 'gzip', 10)).rejects.toThrow(InvalidRequestError);
  });
});
