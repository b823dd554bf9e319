import fc from 'fast-check';
import { anyCodePoint } from './any-code-point.ts';

const space = fc.stringMatching(/^[ \t\r\n]{0,3}$/);
const number = fc.oneof(
  fc.integer().map(String),
  fc.stringMatching(/^-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,5})?([eE][+-]?[0-9]{1,3})?$/),
);
const escapeSequence = fc.stringMatching(/^\\(["\\/bfnrt]|u[0-9a-fA-F]{4})$/);
const plain = fc
  .string({ unit: anyCodePoint, maxLength: 6 })
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones that JSON must escape.
  .map((text) => text.toWellFormed().replace(/["\\\u0000-\u001f]/g, ''));

export const jsonString = fc
  .array(fc.oneof(plain, escapeSequence), { maxLength: 4 })
  .map((parts) => `"${parts.join('')}"`);

/** Names that a program may confuse with others; the last two have the same hash there. */
const oddKey = fc.constantFrom(
  ...['__proto__', '', 'constructor', '\\u0000', '0', 'a'.repeat(32), 'a'.repeat(33), 'mPLLJyp', 'RpvZGLA'].map(
    (name) => `"${name}"`,
  ),
);

/** JSON texts with white space, unusual numbers, escapes and repeated names, which JSON.stringify would not produce. */
const { value: jsonText } = fc.letrec<{ value: string }>((tie) => {
  const padded = fc.tuple(space, tie('value'), space).map((parts) => parts.join(''));
  const key = fc
    .tuple(space, fc.oneof({ weight: 3, arbitrary: jsonString }, oddKey), space)
    .map((parts) => parts.join(''));
  return {
    value: fc.oneof(
      { maxDepth: 5 },
      fc.constantFrom('true', 'false', 'null', '[]', '{}', '[ ]', '{\n}', '""', '0', '-0'),
      number,
      jsonString,
      fc.array(padded, { maxLength: 4 }).map((parts) => `[${parts.join(',')}]`),
      fc
        .array(fc.tuple(key, padded), { maxLength: 4 })
        .map((members) => `{${members.map(([name, value]) => `${name}:${value}`).join(',')}}`),
    ),
  };
});

/** A valid text. */
export const wholeText = fc.tuple(space, jsonText, space).map((parts) => Buffer.from(parts.join('')));

/** A byte replaced, removed or inserted, a range repeated, or the end cut off. */
const mutation = fc.record({
  kind: fc.constantFrom('set', 'drop', 'insert', 'repeat', 'cut', 'swap'),
  at: fc.nat(),
  length: fc.integer({ min: 1, max: 4 }),
  byte: fc.oneof(fc.integer({ min: 0, max: 255 }), fc.constantFrom(...Buffer.from('{}[]",:\\ \n0-+.eEtfnu/'))),
});

function mutate(
  text: Buffer,
  { kind, at: anywhere, length, byte }: { kind: string; at: number; length: number; byte: number },
): Buffer {
  const at = anywhere % (text.length + 1);
  const [before, stretch, after] = [text.subarray(0, at), text.subarray(at, at + length), text.subarray(at + length)];
  switch (kind) {
    case 'set':
      return Buffer.concat([before, Buffer.from([byte]), text.subarray(at + 1)]);
    case 'drop':
      return Buffer.concat([before, after]);
    case 'insert':
      return Buffer.concat([before, Buffer.from([byte]), text.subarray(at)]);
    case 'repeat':
      return Buffer.concat([before, stretch, stretch, after]);
    case 'swap':
      return Buffer.concat([before, Buffer.from(stretch).reverse(), after]);
    default:
      return before;
  }
}

/** A text that may be invalid. */
export const anyText = fc.oneof(
  {
    weight: 3,
    arbitrary: fc
      .tuple(wholeText, fc.array(mutation, { maxLength: 3 }))
      .map(([text, changes]) => changes.reduce(mutate, text)),
  },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)) },
);

export const chunkSizes = fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 60 });

/** Chunks of these lengths, and the rest. */
export function cut(text: Buffer, sizes: readonly number[]): Buffer[] {
  const chunks: Buffer[] = [];
  let from = 0;
  for (const size of sizes) {
    if (from >= text.length) break;
    chunks.push(text.subarray(from, from + size));
    from += size;
  }
  if (from < text.length) chunks.push(text.subarray(from));
  return chunks;
}
