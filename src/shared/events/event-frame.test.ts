import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { anyCodePoint } from '../../../testkit/any-code-point.ts';
import { type EventToArchive, eventsOf, type Frame, frameBytes, framesOf } from './event-frame.ts';

interface Sample {
  readonly sequence: number;
  readonly type: string;
  readonly urn: string | null;
  readonly text: string;
}

async function* toArchive(samples: readonly Sample[], chunkBytes = 300_000): AsyncGenerator<EventToArchive> {
  for (const { text, ...head } of samples) {
    const bytes = Buffer.from(text);
    const chunks: Buffer[] = [];
    for (let at = 0; at < bytes.length; at += chunkBytes) chunks.push(bytes.subarray(at, at + chunkBytes));
    yield { ...head, bytes: bytes.length, text: () => chunks };
  }
}

function read(frames: readonly Frame[]): Sample[] {
  return frames.flatMap((frame, number) => {
    if (frame.heads.length === 0) return [];
    return eventsOf(frame.text).map(({ sequence, type, urn, bytes, start }) => {
      const parts = [frame.text.subarray(start, start + bytes)];
      let length = (parts[0] as Buffer).length;
      for (let next = number + 1; length < bytes; next++) {
        const { heads, text } = frames[next] as Frame;
        expect(heads).toEqual([]);
        parts.push(text);
        length += text.length;
      }
      expect(length).toBe(bytes);
      return { sequence, type, urn, text: Buffer.concat(parts).toString() };
    });
  });
}

const sample = (sequence: number, text: string, type = 'stdoutEvent', urn: string | null = null): Sample => ({
  sequence,
  type,
  urn,
  text,
});

describe('frames', () => {
  test('hold events unchanged, whatever their sizes, and none is larger than a frame', async () => {
    const sizes = [0, 1, 300, frameBytes / 2, frameBytes - 200, frameBytes, frameBytes + 1, 3.5 * frameBytes, 10];
    const samples = sizes.flatMap((bytes, at) => [
      sample(2 * at, 'é'.repeat(bytes / 2), `type${at % 3}`, at % 2 === 0 ? `urn:${'"ü'.repeat(at * 100)}` : null),
      sample(2 * at + 1, '{}\n{}'),
    ]);
    const frames = await Array.fromAsync(framesOf(toArchive(samples)));
    expect(read(frames)).toEqual(samples);
    for (const { text } of frames) expect(text.length).toBeLessThanOrEqual(frameBytes);
    // Full, apart from those before a large event: each event of more than a frame needs a frame of its own.
    expect(frames.length).toBeLessThan(16);
  });

  test('any events', async () => {
    const text = fc.oneof(
      fc.string({ unit: anyCodePoint, maxLength: 30 }).map((any) => Buffer.from(any).toString()),
      fc.integer({ min: 0, max: 700 }).map((chars) => 'x'.repeat(chars)),
    );
    const event = fc.record({
      gap: fc.integer({ min: 1, max: 3 }),
      type: fc.constantFrom('', 'a', 'b'),
      urn: fc.option(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 10 })),
      text,
    });
    const property = fc.asyncProperty(fc.array(event, { maxLength: 12 }), async (events) => {
      let sequence = -1;
      const samples = events.map(({ gap, type, urn, text }) => {
        sequence += gap;
        return sample(sequence, text, type, urn);
      });
      const frames = await Array.fromAsync(framesOf(toArchive(samples, 64), 1024));
      expect(read(frames)).toEqual(samples);
      for (const frame of frames) expect(frame.text.length).toBeLessThanOrEqual(1024);
    });
    await fc.assert(property, { numRuns: 30 });
  });

  test('a text that is not as long as stated is an error', async () => {
    const wrong = async function* (): AsyncGenerator<EventToArchive> {
      yield { sequence: 0, type: '', urn: null, bytes: 3, text: () => [Buffer.from('four')] };
    };
    await expect(Array.fromAsync(framesOf(wrong()))).rejects.toThrow('Event 0 has 4 bytes instead of 3');
  });
});
