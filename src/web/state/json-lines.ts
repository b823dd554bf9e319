/** Spaces for each level. */
const indent = 2;

/** Numbers and strings stay as written, which parsing would not guarantee. Text that is not JSON stays readable as well. */
export function jsonLines(text: string): string[] {
  const lines: string[] = [];
  let line = '';
  let depth = 0;
  const end = (): void => {
    if (line.trim() !== '') lines.push(line);
    line = ' '.repeat(depth * indent);
  };
  for (let at = 0; at < text.length; at++) {
    const character = text[at] as string;
    if (character === '"') {
      const stop = endOfString(text, at);
      line += text.slice(at, stop);
      at = stop - 1;
    } else if (character === '{' || character === '[') {
      line += character;
      const next = nextVisible(text, at + 1);
      if (text[next] === (character === '{' ? '}' : ']')) {
        line += text[next];
        at = next;
      } else {
        depth += 1;
        end();
      }
    } else if (character === '}' || character === ']') {
      depth = Math.max(0, depth - 1);
      end();
      line += character;
    } else if (character === ',') {
      line += character;
      end();
    } else if (character === ':') {
      line += ': ';
    } else if (!/\s/.test(character)) line += character;
  }
  end();
  return lines;
}

function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at + 1;
}

function nextVisible(text: string, start: number): number {
  let at = start;
  while (at < text.length && /\s/.test(text[at] as string)) at += 1;
  return at;
}
