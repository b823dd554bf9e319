/** What is shown at first of a long document, in characters; a little more is shown at once. */
const firstChars = 20_000;

/** The first lines of a document that is so long that all of it would hold up the page; of others, all. */
export function beginningOf(text: string): string {
  if (text.length <= 2 * firstChars) return text;
  const end = text.lastIndexOf('\n', firstChars);
  return text.slice(0, end > 0 ? end : firstChars);
}
