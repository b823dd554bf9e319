/** Longest text from outside that is compared with patterns, in characters. Names, types and claims in use are shorter. */
export const maxMatchedChars = 500;

/**
 * Whether the name has the pattern, in which `*` stands for any characters. Each part between two `*` is searched for once, so the time is
 * proportional to the sum of both lengths. The function name_matches in the database is the same rule.
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

/** As `name.indexOf(part, at)`, whose time is the product of both lengths for some parts of more than 250 characters (Knuth, Morris, Pratt). */
function indexOf(name: string, part: string, at: number): number {
  const length = part.length;
  if (length <= 250) return name.indexOf(part, at);
  // By the length of a beginning of the part: the longest shorter one with which it also ends.
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

/** The pattern in the syntax of LIKE. */
export function likePattern(pattern: string): string {
  return pattern.replace(/[\\%_]/g, '\\$&').replaceAll('*', '%');
}
