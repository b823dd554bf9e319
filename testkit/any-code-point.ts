import fc from 'fast-check';

const firstSurrogate = 0xd800;
const surrogates = 0x800;

/**
 * A `unit` of `fc.string`. The unit `binary` has the same characters, but builds a map of all million of them in each file that uses it,
 * which takes seconds.
 */
export const anyCodePoint = fc.integer({ min: 0, max: 0x10_ffff - surrogates }).map(
  (index) => String.fromCodePoint(index < firstSurrogate ? index : index + surrogates),
  // Lets `fc.string` generate names such as `__proto__`, too.
  (character) => {
    const point = typeof character === 'string' ? (character.codePointAt(0) ?? Number.NaN) : Number.NaN;
    if (Number.isNaN(point) || character !== String.fromCodePoint(point)) throw new Error('Not one character');
    return point < firstSurrogate ? point : point - surrogates;
  },
);
