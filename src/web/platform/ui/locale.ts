/**
 * The locale of numbers and dates: English, as the texts are, with the conventions of the reader's region, such as
 * `1.234,5` and `29 Nov 2026` for `de-DE`. The languages are those that the reader prefers, the first one first.
 */
export function localeOf(languages: readonly string[]): string {
  const [language] = languages;
  if (language === undefined) return 'en';
  try {
    const { region } = new Intl.Locale(language).maximize();
    return region === undefined ? 'en' : `en-${region}`;
  } catch {
    return 'en';
  }
}

export const locale: string = 'document' in globalThis ? localeOf(navigator.languages) : 'en';

/** For quantities with one decimal, such as sizes and shares. */
export const oneDecimal = new Intl.NumberFormat(locale, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
