/**
 * Returns a well-formed copy. V8 makes a part of a string (`slice`, `split`, a match) refer to the whole string, which then stays in
 * memory as long as the part. Copy parts of long texts that outlive a call.
 */
export function copyOf(text: string): string {
  return Buffer.from(text).toString();
}

/** Returns the text if it has at most `maxChars`, otherwise its beginning, as a copy. */
export function cutText(text: string, maxChars: number): string {
  return text.length > maxChars ? copyOf(text.slice(0, maxChars)) : text;
}
