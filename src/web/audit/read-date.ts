/** What a date field means: while a year is typed, it has the years 2, 20 and 202, and what was meant before still is. */
export function readDate(text: string, before: string): string {
  return text === '' || /^[1-9]\d{3}-/.test(text) ? text : before;
}
