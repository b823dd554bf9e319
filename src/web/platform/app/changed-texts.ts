/** In longer texts, the parts that both sides have in common are cut. */
export const maxCharacters = 600;
/** Context shown before and after a change, in characters. */
const around = 60;

/** A long text begins shortly before the first difference and ends shortly after the last one. */
export function changedTexts(before: string, after: string): readonly [string, string] {
  if (before.length <= maxCharacters && after.length <= maxCharacters) return [before, after];
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before.charCodeAt(start) === after.charCodeAt(start)) start++;
  let end = 0;
  while (
    end < shorter - start &&
    before.charCodeAt(before.length - 1 - end) === after.charCodeAt(after.length - 1 - end)
  )
    end++;
  const [from, left] = [Math.max(0, start - around), Math.max(0, end - around)];
  return [partOf(before, from, before.length - left), partOf(after, from, after.length - left)];
}

/** `…` stands for the omitted text. */
export function partOf(text: string, from: number, to: number): string {
  const [start, end] = [isWithinCharacter(text, from) ? from - 1 : from, isWithinCharacter(text, to) ? to + 1 : to];
  return `${start > 0 ? '…' : ''}${text.slice(start, end)}${end < text.length ? '…' : ''}`;
}

function isWithinCharacter(text: string, at: number): boolean {
  return at > 0 && at < text.length && /^[\uDC00-\uDFFF]/.test(text.charAt(at));
}
