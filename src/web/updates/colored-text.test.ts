import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { parseColoredText, stripColors, type TextSpan } from './colored-text.ts';

const plain: Omit<TextSpan, 'text'> = { foreground: null, background: null, isBold: false, isUnderlined: false };
const esc = '\u001b';

describe('colored text', () => {
  test('reads the tags of the CLI', () => {
    expect(parseColoredText('a<{%bold%}><{%fg 1%}>error: <{%reset%}>b<{%bg 3%}><{%underline%}>c')).toEqual([
      { text: 'a', ...plain },
      { text: 'error: ', ...plain, isBold: true, foreground: 1 },
      { text: 'b', ...plain },
      { text: 'c', ...plain, background: 3, isUnderlined: true },
    ]);
  });

  test('reads ANSI colors', () => {
    expect(parseColoredText(`${esc}[1;31mred${esc}[0m ${esc}[92mgreen${esc}[39m${esc}[38;5;200;4mx`)).toEqual([
      { text: 'red', ...plain, isBold: true, foreground: 1 },
      { text: ' ', ...plain },
      { text: 'green', ...plain, foreground: 10 },
      { text: 'x', ...plain, isUnderlined: true },
    ]);
  });

  test.each([
    ['unknown tags', '<{%nonsense 12%}>a<{%fg 99%}>', 'a'],
    ['an open tag', '<{%bold', '<{%bold'],
    ['moves of the cursor', `${esc}[2J${esc}[1;1Ha${esc}[K`, 'a'],
    ['links of terminals', `${esc}]8;;javascript:alert(1)\u0007text${esc}]8;;\u0007`, 'text'],
    ['titles of terminals', `${esc}]0;title${esc}\\a`, 'a'],
    ['control characters', 'a\u0000\u0007\u0008b\u009b\nc\td\r\ne', 'ab\nc\td\ne'],
    ['HTML, which stays text', '<script>alert(1)</script>', '<script>alert(1)</script>'],
  ])('%s', (_, text, expected) => {
    expect(stripColors(text)).toBe(expected);
  });

  test('never returns a control character, and keeps all of a plain text', () => {
    const chunks = fc.constantFrom('<{%', '%}>', 'fg 1', esc, '[', '31m', ']8;;', '\u0007', 'a', '<b>', '\n', ';');
    fc.assert(
      fc.property(fc.array(chunks), (parts) => {
        expect(stripColors(parts.join(''))).not.toMatch(/(?!\n)\p{Cc}/u);
      }),
    );
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('a', '<', '{', '%', '}', '>', ' ', 'ü', '😀') }), (text) => {
        if (!/<\{%[^%]*%\}>/.test(text)) expect(stripColors(text)).toBe(text);
      }),
    );
  });
});
