import { describe, expect, it } from '@jest/globals';
import { localeOf } from './locale.ts';

describe('the locale of numbers and dates', () => {
  it.each([
    { languages: ['de-DE', 'en-US'], number: '12.345,6', date: '29 Nov 2026' },
    { languages: ['de'], number: '12.345,6', date: '29 Nov 2026' },
    { languages: ['en-GB'], number: '12,345.6', date: '29 Nov 2026' },
    { languages: ['en'], number: '12,345.6', date: 'Nov 29, 2026' },
    { languages: [], number: '12,345.6', date: 'Nov 29, 2026' },
    { languages: ['no_such tag'], number: '12,345.6', date: 'Nov 29, 2026' },
  ])('has English words and the conventions of the region of $languages', ({ languages, number, date }) => {
    const locale = localeOf(languages);
    expect((12345.6).toLocaleString(locale)).toBe(number);
    expect(
      new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeZone: 'UTC' }).format(Date.UTC(2026, 10, 29)),
    ).toBe(date);
  });
});
