/** Longer external texts are not compared with patterns. Names, types and claims in use are shorter. */
export const maxMatchedChars = 500;

/**
 * In the pattern, `*` stands for any characters. Searches once for each part between two `*`, so the time is proportional to the sum of
 * both lengths. The database function name_matches is the same rule.
 */
export function nameMatches(pattern: string | null, name: string): boolean {
  if (pattern === null) return true;
  const parts = pattern.split('*');
  const [first = ''] = parts;
  if (parts.length === 1) return first === name;
  const last = parts.at(-1) ?? '';
  const end = name.length - last.length;
  if (first.length > end || !name.startsWith(first) || !name.endsWith(last)) return false;
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = indexOf(name, part, at);
    if (found < 0 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}

/** Knuth, Morris, Pratt: `name.indexOf(part, at)` takes the product of both lengths for some parts of over 250 characters. */
function indexOf(name: string, part: string, at: number): number {
  const length = part.length;
  if (length <= 250) return name.indexOf(part, at);
  // For each length of a prefix of the part: the longest shorter prefix with which it also ends.
  const shorter = [0, 0];
  let same = 0;
  for (let index = 1; index < length; index++) {
    const code = part.charCodeAt(index);
    while (same > 0 && code !== part.charCodeAt(same)) same = shorter[same] as number;
    if (code === part.charCodeAt(same)) same++;
    shorter.push(same);
  }
  same = 0;
  let index = at;
  for (; same < length && index < name.length; index++) {
    const code = name.charCodeAt(index);
    while (same > 0 && code !== part.charCodeAt(same)) same = shorter[same] as number;
    if (code === part.charCodeAt(same)) same++;
  }
  return same === length ? index - length : -1;
}

export function likePattern(pattern: string): string {
  return pattern.replace(/[\\%_]/g, '\\$&').replaceAll('*', '%');
}
