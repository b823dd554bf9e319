/**
 * A well-formed copy. V8 makes a part of a string (`slice`, `split`, a match) refer to the whole one, which then stays in memory
 * for as long as the part does: copy parts of long texts that outlive a call.
 */
export function copyOf(text: string): string {
  return Buffer.from(text).toString();
}

/** The text if it is no longer than `maxChars`, else its beginning, as a copy. */
export function cutText(text: string, maxChars: number): string {
  return text.length > maxChars ? copyOf(text.slice(0, maxChars)) : text;
}
