import { type JsonKind, JsonScanner } from './json-scanner.ts';

/** `nameStart` is the opening quote; `name` is decoded. */
export interface MemberSpan {
  readonly name: string;
  readonly nameStart: number;
  readonly valueStart: number;
  readonly valueEnd: number;
  readonly kind: JsonKind;
}

/** In order, including repeated names. */
export function listMembers(text: Buffer): MemberSpan[] {
  const members: MemberSpan[] = [];
  let previousEnd = 0;
  const scanner = new JsonScanner({
    reportDepth: 1,
    onValue: (path, kind, start, end) => {
      if (path.length !== 1) return;
      // Only a comma and white space separate two members, so the next quote opens the name.
      const nameStart = text.indexOf(0x22, previousEnd);
      members.push({ name: String(path[0]), nameStart, valueStart: start, valueEnd: end, kind });
      previousEnd = end;
    },
  });
  scanner.write(text);
  scanner.end();
  return members;
}

/** The current value is null if absent; a null result removes the member. */
export type MemberEdit = (value: Buffer | null) => Buffer | null;

/**
 * Sets members (appended if missing) or removes them. Keeps every other byte, except the separators beside a removed member. Of a repeated
 * edited name, only the last member remains.
 */
export function editMembers(text: Buffer, edits: ReadonlyMap<string, MemberEdit>): Buffer {
  const members = listMembers(text);
  const lastOf = new Map<string, MemberSpan>();
  for (const member of members) if (edits.has(member.name)) lastOf.set(member.name, member);

  const bodyStart = text.indexOf(0x7b) + 1;
  const firstGap = text.subarray(bodyStart, members[0]?.nameStart ?? bodyStart);
  const chunks: Buffer[] = [text.subarray(0, bodyStart)];
  let gapStart = bodyStart;
  for (const member of members) {
    const { name, nameStart, valueStart, valueEnd } = member;
    const edit = edits.get(name);
    const value = text.subarray(valueStart, valueEnd);
    const kept = !edit ? value : lastOf.get(name) === member ? edit(value) : null;
    if (kept) {
      // The first remaining member takes over the gap of the first member, which has no comma.
      const gap = chunks.length === 1 ? firstGap : text.subarray(gapStart, nameStart);
      chunks.push(gap, text.subarray(nameStart, valueStart), kept);
    }
    gapStart = valueEnd;
  }
  for (const [name, edit] of edits) {
    const value = lastOf.has(name) ? null : edit(null);
    if (value) chunks.push(Buffer.from(chunks.length === 1 ? '' : ','), nameText(name), value);
  }
  chunks.push(text.subarray(gapStart));
  return Buffer.concat(chunks);
}

export interface Replacement {
  readonly start: number;
  readonly end: number;
  readonly by: Buffer;
}

/** `replacements` are in ascending order and do not overlap. */
export function replaceRanges(text: Buffer, replacements: readonly Replacement[]): Buffer {
  const chunks: Buffer[] = [];
  let from = 0;
  for (const { start, end, by } of replacements) {
    chunks.push(text.subarray(from, start), by);
    from = end;
  }
  chunks.push(text.subarray(from));
  return Buffer.concat(chunks);
}

export function nameText(name: string): Buffer {
  return Buffer.from(`${JSON.stringify(name)}:`);
}

const separator = Buffer.from(',');

export function joinParts(open: string, parts: readonly Buffer[], close: string): Buffer {
  const chunks: Buffer[] = [Buffer.from(open)];
  parts.forEach((part, i) => {
    if (i > 0) chunks.push(separator);
    chunks.push(part);
  });
  chunks.push(Buffer.from(close));
  return Buffer.concat(chunks);
}
