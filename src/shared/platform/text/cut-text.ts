/**
 * Returns a well-formed copy. In V8, a part of a string (`slice`, `split`, a match) keeps the whole string in memory. Copy parts of long
 * texts that outlive a call.
 */
export function copyOf(text: string): string {
  return Buffer.from(text).toString();
}

/** The beginning of a longer text is a copy. */
export function cutText(text: string, maxChars: number): string {
  return text.length > maxChars ? copyOf(text.slice(0, maxChars)) : text;
}
