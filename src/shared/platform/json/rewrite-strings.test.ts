import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { anyCodePoint } from '../../../../testkit/any-code-point.ts';
import { decodeJsonString } from './json-strings.ts';
import { encodeJsonString, rewriteStrings, StringSpans } from './rewrite-strings.ts';

function decode(json: string): string {
  const text = Buffer.from(`  ${json} `);
  return decodeJsonString(text, 2, text.length - 1);
}

describe('JSON strings as encoded by Go', () => {
  test('escapes quotes, control, HTML and line separator characters and nothing else', () => {
    expect(encodeJsonString('"\\/\b\f\n\r\t\u0001\u001f\u007f<>&\u2028\u2029é日😀')).toBe(
      '"\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\u007f\\u003c\\u003e\\u0026\\u2028\\u2029é日😀"',
    );
  });

  test('decodes a lone surrogate as U+FFFD', () => {
    expect(decode('"a\\ud800b\\udc00\\ud83d\\ude00"')).toBe('a\ufffdb\ufffd😀');
  });

  test('decodes what it encoded', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCodePoint }), (value) => {
        expect(decode(encodeJsonString(value))).toBe(value.toWellFormed());
      }),
    );
  });
});

describe('rewriteStrings', () => {
  const text = Buffer.from('{"a":"x\\u0041\\"","b":1.0,"c":"é"}');
  const starts = (...offsets: number[]): Float64Array => {
    const found = new StringSpans();
    for (const offset of offsets) found.add(offset);
    return found.sorted();
  };
  const [a, c] = [5, 29];

  /** With every chunk length. */
  async function rewrite(offsets: Float64Array, rule: (value: string, start: number) => string): Promise<string> {
    const results = new Set<string>();
    for (let length = 1; length <= text.length; length++) {
      const chunks = async function* () {
        for (let at = 0; at < text.length; at += length) yield text.subarray(at, at + length);
      };
      const parts: Buffer[] = [];
      for await (const part of rewriteStrings(chunks(), offsets, rule)) parts.push(part);
      results.add(Buffer.concat(parts).toString());
    }
    expect(results.size).toBe(1);
    return [...results][0] as string;
  }

  test('changes only the strings at the given offsets', async () => {
    expect(await rewrite(starts(c), (value) => `${value}<`)).toBe('{"a":"x\\u0041\\"","b":1.0,"c":"é\\u003c"}');
  });

  test('accepts offsets in any order and passes value and offset to the rule', async () => {
    expect(await rewrite(starts(c, a), (value, start) => `${value}${start}`)).toBe('{"a":"xA\\"5","b":1.0,"c":"é29"}');
  });

  test('leaves the text unchanged without offsets', async () => {
    expect(await rewrite(starts(), () => 'x')).toBe(text.toString());
  });

  test('holds many offsets', () => {
    const many = Array.from({ length: 5_000 }, (_, index) => 10_000 - index);
    expect([...starts(...many)]).toEqual(many.toReversed());
  });
});
