import { describe, expect, it } from '@jest/globals';
import { dateLocaleOf, numberLocaleOf } from './locale.ts';

describe('the locales of numbers and dates', () => {
  it.each([
    { languages: ['de-DE', 'en-US'], number: '12.345,6', date: '29 Nov 2026, 15:04' },
    { languages: ['de'], number: '12.345,6', date: '29 Nov 2026, 15:04' },
    { languages: ['pt-BR'], number: '12.345,6', date: '29 Nov 2026, 15:04' },
    { languages: ['ru-RU'], number: '12 345,6', date: '29 Nov 2026, 15:04' },
    { languages: ['zh-CN'], number: '12,345.6', date: '29 Nov 2026, 15:04' },
    { languages: ['fa-IR'], number: '12,345.6', date: '29 Nov 2026, 15:04' },
    { languages: ['en-GB'], number: '12,345.6', date: '29 Nov 2026, 15:04' },
    { languages: ['en-US'], number: '12,345.6', date: 'Nov 29, 2026, 3:04 PM' },
    { languages: ['es-US'], number: '12,345.6', date: 'Nov 29, 2026, 3:04 PM' },
    { languages: ['en'], number: '12,345.6', date: 'Nov 29, 2026, 3:04 PM' },
    { languages: [], number: '12,345.6', date: 'Nov 29, 2026, 3:04 PM' },
    { languages: ['no_such tag'], number: '12,345.6', date: 'Nov 29, 2026, 3:04 PM' },
  ])('have English words and the conventions of the reader of $languages', ({ languages, number, date }) => {
    const plain = (text: string): string => text.replaceAll(/\s/g, ' ');
    expect(plain((12345.6).toLocaleString(numberLocaleOf(languages)))).toBe(number);
    const options = { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' } as const;
    const at = Date.UTC(2026, 10, 29, 15, 4);
    expect(plain(new Intl.DateTimeFormat(dateLocaleOf(languages), options).format(at))).toBe(date);
  });
});
