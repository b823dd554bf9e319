import { nextSlice, timeSliceBytes } from '../slices/slices.ts';

/**
 * Known names, by a hash of their bytes. Most names occur many times, and comparing a name takes a third of the time of decoding it. A name
 * takes over another's slot when it occurs twice in a row. Therefore the table never grows, and texts whose names all differ do not pay for
 * copies.
 */
const slotCount = 1024;
const slotBytes = 32;
const names = new Array<string>(slotCount).fill('');
const lengths = new Uint8Array(slotCount);
const slots = new Uint8Array(slotCount * slotBytes);
/** By slot: the hash of the last name that was not there. */
const missed = new Int32Array(slotCount);

/** Decodes a name without its quotes, [from, to) of valid JSON. Keeps a lone surrogate. */
export function memberName(text: Buffer, from: number, to: number): string {
  const length = to - from;
  if (length > slotBytes) return decoded(text, from, to);
  let hash = length;
  for (let i = from; i < to; i++) hash = Math.imul(hash ^ (text[i] as number), 0x01000193);
  const slot = (hash ^ (hash >>> 16)) & (slotCount - 1);
  if (isInSlot(slot, text, from, length)) return names[slot] as string;
  const name = decoded(text, from, to);
  if (missed[slot] === hash) {
    text.copy(slots, slot * slotBytes, from, to);
    lengths[slot] = length;
    names[slot] = name;
  }
  missed[slot] = hash;
  return name;
}

function isInSlot(slot: number, text: Buffer, from: number, length: number): boolean {
  if (lengths[slot] !== length) return false;
  const start = slot * slotBytes;
  for (let i = 0; i < length; i++) if (slots[start + i] !== text[from + i]) return false;
  return true;
}

/** Decodes [start, end), including the quotes, like Go: a lone surrogate becomes U+FFFD. */
export function decodeJsonString(text: Buffer, start: number, end: number): string {
  return decoded(text, start + 1, end - 1).toWellFormed();
}

function decoded(text: Buffer, from: number, to: number): string {
  const raw = text.toString('utf8', from, to);
  return raw.includes('\\') ? (JSON.parse(`"${raw}"`) as string) : raw;
}

const backslash = 0x5c;
const unicode = 0x75;
const surrogatePair = /^\\ud[89ab]..\\ud[c-f]/i;

/** Returns UTF-8. Decodes at most about 1 MiB per event loop tick. */
export async function decodeStringInSlices(text: Buffer, start: number, end: number): Promise<Buffer> {
  if (end - start <= timeSliceBytes) return Buffer.from(decodeJsonString(text, start, end));
  const inner = text.subarray(start + 1, end - 1);
  const parts: Buffer[] = [];
  for (let from = 0; from < inner.length; ) {
    const to = chunkEnd(inner, from, Math.min(from + timeSliceBytes, inner.length));
    parts.push(Buffer.from(decodeJsonString(inner, from - 1, to + 1)));
    from = to;
    await nextSlice();
  }
  return Buffer.concat(parts);
}

/** The end splits no escape, surrogate pair or character. */
function chunkEnd(inner: Buffer, from: number, to: number): number {
  if (to === inner.length) return to;
  const chunk = inner.subarray(0, to);
  for (let at = chunk.indexOf(backslash, from); at >= 0; ) {
    const next = at + escapeBytes(inner, at);
    if (next > to) return at;
    at = chunk.indexOf(backslash, next);
  }
  let end = to;
  while (((inner[end] as number) & 0xc0) === 0x80) end -= 1;
  return end;
}

function escapeBytes(inner: Buffer, at: number): number {
  if (inner[at + 1] !== unicode) return 2;
  return surrogatePair.test(inner.toString('latin1', at, at + 12)) ? 12 : 6;
}
