/** Colors are the 16 terminal colors. */
export interface TextSpan {
  text: string;
  foreground: number | null;
  background: number | null;
  isBold: boolean;
  isUnderlined: boolean;
}

type Style = Omit<TextSpan, 'text'>;

const plain: Style = { foreground: null, background: null, isBold: false, isUnderlined: false };

const esc = String.fromCharCode(0x1b);
const bell = String.fromCharCode(0x07);

/** Tags of the CLI; ANSI sequences: CSI, OSC (links, titles), shorter ones; other control characters. */
const marks = new RegExp(
  [
    String.raw`<\{%([^%]{0,32})%\}>`,
    String.raw`${esc}\[([0-9;:?]{0,64})([@-~])`,
    String.raw`${esc}\][^${bell}${esc}]{0,4096}(?:${bell}|${esc}\\|$)`,
    String.raw`${esc}[ -\/]*[0-~]?`,
    String.raw`(?![\n\t])\p{Cc}`,
  ].join('|'),
  'gu',
);

/** Unknown tags and sequences that move the cursor are dropped. The result is plain text and must never be used as HTML. */
export function parseColoredText(text: string): TextSpan[] {
  const spans: TextSpan[] = [];
  let style = plain;
  let from = 0;
  for (const match of text.replaceAll('\r\n', '\n').matchAll(marks)) {
    from = add(spans, match.input.slice(from, match.index), style, match.index + match[0].length);
    if (match[1] !== undefined) style = applyTag(style, match[1]);
    else if (match[3] === 'm') style = applyAnsi(style, match[2] ?? '');
  }
  add(spans, text.replaceAll('\r\n', '\n').slice(from), style, 0);
  return spans;
}

/** The lines of a text, each in its styles. */
export function parseColoredLines(text: string): TextSpan[][] {
  const lines: TextSpan[][] = [[]];
  for (const span of parseColoredText(text)) {
    for (const [at, part] of span.text.split('\n').entries()) {
      if (at > 0) lines.push([]);
      if (part !== '') lines.at(-1)?.push({ ...span, text: part });
    }
  }
  return lines;
}

/** The text alone. */
export function stripColors(text: string): string {
  return parseColoredText(text)
    .map((span) => span.text)
    .join('');
}

function add(spans: TextSpan[], text: string, style: Style, next: number): number {
  const last = spans.at(-1);
  if (text === '') return next;
  if (last !== undefined && isSame(last, style)) last.text += text;
  else spans.push({ text, ...style });
  return next;
}

function isSame(one: Style, other: Style): boolean {
  return (
    one.foreground === other.foreground &&
    one.background === other.background &&
    one.isBold === other.isBold &&
    one.isUnderlined === other.isUnderlined
  );
}

function applyTag(style: Style, tag: string): Style {
  const [name, value] = tag.trim().split(' ');
  if (name === 'reset') return plain;
  if (name === 'bold') return { ...style, isBold: true };
  if (name === 'underline') return { ...style, isUnderlined: true };
  const color = readColor(value);
  if (name === 'fg' && color !== null) return { ...style, foreground: color };
  if (name === 'bg' && color !== null) return { ...style, background: color };
  return style;
}

function readColor(value: string | undefined): number | null {
  return value !== undefined && /^\d{1,3}$/.test(value) && Number(value) < 16 ? Number(value) : null;
}

function applyAnsi(style: Style, parameters: string): Style {
  const codes = parameters === '' ? [0] : parameters.split(/[;:]/).map(Number);
  let result = style;
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at] as number;
    if (code === 38 || code === 48) {
      // 256 colors (5;n) or true color (2;r;g;b): our palette has only the 16 basic colors.
      const color = codes[at + 1] === 5 ? readColor(String(codes[at + 2])) : null;
      if (color !== null) result = { ...result, [code === 38 ? 'foreground' : 'background']: color };
      at += codes[at + 1] === 5 ? 2 : 4;
    } else result = applyCode(result, code);
  }
  return result;
}

function applyCode(style: Style, code: number): Style {
  if (code === 0) return plain;
  if (code === 1) return { ...style, isBold: true };
  if (code === 22) return { ...style, isBold: false };
  if (code === 4) return { ...style, isUnderlined: true };
  if (code === 24) return { ...style, isUnderlined: false };
  if (code === 39) return { ...style, foreground: null };
  if (code === 49) return { ...style, background: null };
  if (code >= 30 && code <= 37) return { ...style, foreground: code - 30 };
  if (code >= 40 && code <= 47) return { ...style, background: code - 40 };
  if (code >= 90 && code <= 97) return { ...style, foreground: code - 82 };
  if (code >= 100 && code <= 107) return { ...style, background: code - 92 };
  return style;
}
