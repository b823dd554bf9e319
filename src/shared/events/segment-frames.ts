import { hash } from 'node:crypto';
import { zstdDecompressSync } from 'node:zlib';
import { asDamage, DamagedBytesError } from '../state/checkpoints/document-codec.ts';
import type { IndexedFrame, SegmentIndex } from './segment-index.ts';

/** The minimum of Node's decoder. */
const minChunkBytes = 64;

/** What the reader still needs, so that no more frames are read at once. */
export interface Appetite {
  readonly events: number;
  readonly bytes: number;
}

export interface LocatedFrame extends IndexedFrame {
  readonly number: number;
  /** The position of the compressed bytes. */
  readonly at: number;
}

export function locateFrames(index: SegmentIndex): { index: SegmentIndex; all: readonly LocatedFrame[] } {
  let at = 0;
  const all = index.frames.map((frame, number) => {
    const located = { ...frame, number, at };
    at += frame.stored;
    return located;
  });
  return { index, all };
}

/** An estimate; at least one of these adjacent frames. */
export function runLength(
  frames: readonly LocatedFrame[],
  { low, high }: { readonly low: number; readonly high: number },
  left: Appetite,
): number {
  let { events, bytes } = left;
  let length = 0;
  for (const frame of frames) {
    const before = frames[length - 1];
    if (before && (events <= 0 || bytes <= 0 || Math.abs(frame.number - before.number) !== 1)) return length;
    length++;
    const inRange = Math.min(high, frame.last) - Math.max(low, frame.first) + 1;
    const share = inRange / (frame.last - frame.first + 1);
    events -= frame.count * share;
    bytes -= frame.size * share;
  }
  return length;
}

/** Synchronous, because it takes a third of a millisecond; another thread would take twice the CPU time. Throws DamagedBytesError. */
export function decodeFrame(frame: IndexedFrame, encoded: Buffer): Buffer {
  // With the default chunks of 16 KiB, decompression takes three times as long.
  const options = { maxOutputLength: frame.size, chunkSize: Math.max(frame.size, minChunkBytes) };
  let text: Buffer;
  try {
    text = zstdDecompressSync(encoded, options);
  } catch (error) {
    throw asDamage(error);
  }
  if (hash('sha256', text, 'base64') !== frame.sha256) {
    throw new DamagedBytesError('The SHA-256 of a frame does not match the bytes that were written');
  }
  return text;
}
