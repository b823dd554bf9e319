import { expect, test } from '@jest/globals';
import { changedTexts, maxCharacters, partOf } from './changed-texts.ts';

const line = 'export NAME=value\n';
const script = (port: string): string => `${line.repeat(120)}listen ${port}\n${line.repeat(120)}`;

test('of a long text, what differs is shown', () => {
  const [before, after] = changedTexts(script('80'), script('8443'));
  expect([before.includes('listen 80\n'), after.includes('listen 8443\n')]).toEqual([true, true]);
  for (const text of [before, after]) {
    expect(text).toMatch(/^….*…$/s);
    expect(text.length).toBeLessThan(maxCharacters / 2);
  }
});

test('what is added or removed at the end of a long text is shown', () => {
  const long = line.repeat(100);
  const [before, after] = changedTexts(long, `${long}last`);
  expect([before.endsWith('value\n'), after.endsWith('value\nlast')]).toEqual([true, true]);
  expect(changedTexts(`${long}${line}`, long)[0].length).toBeLessThan(maxCharacters / 2);
});

test('short texts are shown whole, and no character is cut in two', () => {
  expect(changedTexts('a', 'b')).toEqual(['a', 'b']);
  const emoji = (first: string, last: string) => `${first}${'😀'.repeat(500)}${last}`;
  for (const first of ['', 'x'])
    for (const text of [
      ...changedTexts(emoji(first, 'a'), emoji(first, 'bc')),
      ...changedTexts(emoji('a', first), emoji('bc', first)),
    ])
      expect(text.isWellFormed()).toBe(true);
  for (const to of [1, 2, 3]) expect(partOf('😀😀', 0, to).isWellFormed()).toBe(true);
  for (const from of [1, 2, 3]) expect(partOf('😀😀', from, 4).isWellFormed()).toBe(true);
});
