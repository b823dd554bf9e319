/** The locale of the texts, and of readers whose languages are not known. */
const plain = 'en';

/** `1.234,5` for `de-DE`. Numbers contain no words, so it is the language that the reader prefers, with Latin digits. */
export function numberLocaleOf([language]: readonly string[]): string {
  return tagOf(language, (reader) => new Intl.Locale(reader, { numberingSystem: 'latn' }).toString());
}

/** English, like the texts, with the conventions of the reader's region: `29 Nov 2026` for `de-DE`. */
export function dateLocaleOf([language]: readonly string[]): string {
  return tagOf(language, (reader) => {
    const { region } = reader.maximize();
    if (region === undefined) return plain;
    const tag = `en-${region}`;
    // For most regions, there is no English locale; it would fall back to the conventions of the United States.
    return new Intl.DateTimeFormat(tag).resolvedOptions().locale === tag ? tag : 'en-GB';
  });
}

function tagOf(language: string | undefined, toTag: (reader: Intl.Locale) => string): string {
  if (language === undefined) return plain;
  try {
    return toTag(new Intl.Locale(language));
  } catch {
    return plain;
  }
}

const languages: readonly string[] = 'document' in globalThis ? navigator.languages : [];

export const numberLocale: string = numberLocaleOf(languages);
export const dateLocale: string = dateLocaleOf(languages);

/** The format is for sizes, shares and the like. */
export const oneDecimal = new Intl.NumberFormat(numberLocale, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
