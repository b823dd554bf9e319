/** Strings, numbers and nested messages. */

/** Text or bytes, a non-negative integer, or a nested message. */
export type Field = readonly [number: number, value: string | number | Buffer];

export function encode(fields: readonly Field[]): Buffer {
  const parts = fields.flatMap(([number, value]) => {
    if (typeof value === 'number') return [varint(number << 3), varint(value)];
    const bytes = Buffer.isBuffer(value) ? value : Buffer.from(value);
    return [varint((number << 3) | 2), varint(bytes.length), bytes];
  });
  return Buffer.concat(parts);
}

/** Returns the first value of a field with a length (text, bytes or a message); empty if there is none. */
export function fieldOf(message: Buffer, wanted: number): Buffer {
  for (let at = 0; at < message.length; ) {
    const [key, afterKey] = readVarint(message, at);
    const [value, afterValue] = readVarint(message, afterKey);
    const type = key & 7;
    if (type === 0) at = afterValue;
    else if (type === 1) at = afterKey + 8;
    else if (type === 5) at = afterKey + 4;
    else {
      at = afterValue + value;
      if (key >> 3 === wanted) return message.subarray(afterValue, at);
    }
  }
  return Buffer.alloc(0);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let left = value;
  for (; left > 127; left = Math.floor(left / 128)) bytes.push((left % 128) | 128);
  bytes.push(left);
  return Buffer.from(bytes);
}

function readVarint(message: Buffer, start: number): [value: number, end: number] {
  let value = 0;
  let at = start;
  for (let factor = 1; ; factor *= 128) {
    const byte = message[at++] ?? 0;
    value += (byte & 127) * factor;
    if (byte < 128) return [value, at];
  }
}
