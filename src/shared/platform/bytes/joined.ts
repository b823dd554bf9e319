/** Joins the parts into one buffer. A single part is not copied. */
export function joined(parts: readonly Buffer[], totalBytes?: number): Buffer {
  const [first] = parts;
  return first !== undefined && parts.length === 1 ? first : Buffer.concat(parts, totalBytes);
}
