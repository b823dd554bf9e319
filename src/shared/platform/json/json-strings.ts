/**
 * Names that were read before, by a hash of their bytes. Most names occur many times, and comparing a name takes a third of the time of
 * decoding it. A name takes over the slot of another one when it occurs twice in a row. Therefore the table never grows, and texts whose
 * names all differ do not pay for copies.
 */
const slotCount = 1024;
const slotBytes = 32;
const names = new Array<string>(slotCount).fill('');
const lengths = new Uint8Array(slotCount);
const slots = new Uint8Array(slotCount * slotBytes);
/** The hash of the last name that was not in its slot. */
const missed = new Int32Array(slotCount);

/** Decodes the bytes [from, to) of valid JSON, a member's name without its quotes. Keeps a lone surrogate. */
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

/** Decodes the JSON string at [start, end), including its quotes, like Go: a lone surrogate becomes U+FFFD. */
export function decodeJsonString(text: Buffer, start: number, end: number): string {
  return decoded(text, start + 1, end - 1).toWellFormed();
}

function decoded(text: Buffer, from: number, to: number): string {
  const raw = text.toString('utf8', from, to);
  return raw.includes('\\') ? (JSON.parse(`"${raw}"`) as string) : raw;
}
