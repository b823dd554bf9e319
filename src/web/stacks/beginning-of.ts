/** In characters; slightly longer documents are shown as a whole. */
const firstChars = 20_000;

/** A long document takes too long to render at once. */
export function beginningOf(text: string): string {
  if (text.length <= 2 * firstChars) return text;
  const end = text.lastIndexOf('\n', firstChars);
  return text.slice(0, end > 0 ? end : firstChars);
}
