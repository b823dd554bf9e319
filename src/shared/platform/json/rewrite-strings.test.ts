import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { decodeJsonString, encodeJsonString, StringRewriter } from './rewrite-strings.ts';

function decode(json: string): string {
  const text = Buffer.from(`  ${json} `);
  return decodeJsonString(text, 2, text.length - 1);
}

describe('JSON strings in the spelling of Go', () => {
  test('escapes quotes, control, HTML and line separator characters and nothing else', () => {
    expect(encodeJsonString('"\\/\b\f\n\r\t\u0001\u001f\u007f<>&\u2028\u2029é日😀')).toBe(
      '"\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\u007f\\u003c\\u003e\\u0026\\u2028\\u2029é日😀"',
    );
  });

  test('reads a lone surrogate as U+FFFD', () => {
    expect(decode('"a\\ud800b\\udc00\\ud83d\\ude00"')).toBe('a\ufffdb\ufffd😀');
  });

  test('reads back what it wrote', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (value) => {
        expect(decode(encodeJsonString(value))).toBe(value.toWellFormed());
      }),
    );
  });
});

describe('StringRewriter', () => {
  const text = Buffer.from('{"a":"x\\u0041","b":1.0,"c":"é"}');
  const [a, c] = [
    { start: 5, end: 14 },
    { start: 27, end: 31 },
  ];

  test('changes only the strings that its rules change', () => {
    const strings = new StringRewriter(text);
    strings.add(a.start, a.end, (value) => value);
    strings.add(c.start, c.end, (value) => `${value}<`);
    expect(strings.apply().toString()).toBe('{"a":"x\\u0041","b":1.0,"c":"é\\u003c"}');
  });

  test('takes places in any order', () => {
    const strings = new StringRewriter(text);
    strings.add(c.start, c.end, () => 'later and longer');
    strings.add(a.start, a.end, () => '');
    expect(strings.apply().toString()).toBe('{"a":"","b":1.0,"c":"later and longer"}');
  });

  test('returns the same buffer when nothing changes', () => {
    const strings = new StringRewriter(text);
    strings.add(a.start, a.end, () => 'xA');
    expect(strings.apply()).toBe(text);
  });
});
