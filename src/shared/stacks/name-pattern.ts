/** Whether the name has the pattern, in which `*` stands for any characters. Takes time proportional to both lengths at most. */
export function nameMatches(pattern: string | null, name: string): boolean {
  if (pattern === null) return true;
  let at = 0;
  let position = 0;
  let star = -1;
  let starPosition = 0;
  while (position < name.length) {
    if (at < pattern.length && pattern[at] === '*') {
      star = at++;
      starPosition = position;
    } else if (at < pattern.length && pattern[at] === name[position]) {
      at++;
      position++;
    } else if (star >= 0) {
      at = star + 1;
      position = ++starPosition;
    } else {
      return false;
    }
  }
  while (pattern[at] === '*') at++;
  return at === pattern.length;
}

/** The pattern in the syntax of LIKE. */
export function likePattern(pattern: string): string {
  return pattern.replace(/[\\%_]/g, '\\$&').replaceAll('*', '%');
}
