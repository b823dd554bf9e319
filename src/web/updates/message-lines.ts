import { parseColoredLines, stripColors, type TextSpan } from './colored-text.ts';
import type { Diagnostic, UpdateProgress } from './update-progress.ts';

/** The messages are of a resource, or of the engine and the program. */
export interface MessageGroup {
  readonly urn: string | null;
  readonly type: string;
  readonly diagnostics: readonly Diagnostic[];
}

/** The messages of the engine and the program come first. */
export function groupMessages({ diagnostics, rows }: UpdateProgress): MessageGroup[] {
  return [
    { urn: null, type: '', diagnostics },
    ...[...rows.values()].map((row) => ({ urn: row.urn, type: row.type, diagnostics: row.diagnostics })),
  ].filter((group) => group.diagnostics.length > 0);
}

/** Its id consists of the number of the message and its own number, and does not change. */
export interface MessageLine {
  readonly id: string;
  readonly number: number;
  readonly spans: readonly TextSpan[];
}

export function linesOf({ message, sequence }: Diagnostic): MessageLine[] {
  return parseColoredLines(message.trimEnd()).map((spans, at) => ({
    id: `${sequence}-${at + 1}`,
    number: at + 1,
    spans,
  }));
}

/** Ids are returned from top to bottom. */
export function findLines(groups: readonly MessageGroup[], text: string): string[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === '') return [];
  const found: string[] = [];
  for (const { message, sequence } of groups.flatMap(({ diagnostics }) => diagnostics)) {
    for (const [at, line] of stripColors(message.trimEnd()).split('\n').entries())
      if (line.toLowerCase().includes(wanted)) found.push(`${sequence}-${at + 1}`);
  }
  return found;
}

/** Among all lines, or -1 if there is no such message. */
export function placeOfLine(groups: readonly MessageGroup[], line: string): number {
  const [sequence, number] = line.split('-').map(Number);
  let place = 0;
  for (const diagnostic of groups.flatMap(({ diagnostics }) => diagnostics)) {
    const lines = countLines(diagnostic);
    if (diagnostic.sequence === sequence) return place + Math.min(Math.max(number ?? 1, 1), lines) - 1;
    place += lines;
  }
  return -1;
}

function countLines({ message }: Diagnostic): number {
  const text = message.trimEnd();
  let count = 1;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count += 1;
  return count;
}

/** The lines from `from` on, before `until`, are shown. */
export interface ShownMessage {
  readonly diagnostic: Diagnostic;
  readonly from: number;
  readonly until: number;
}

/** `count` of all lines, from `from` on, with their groups, and the number of all lines: a log may have millions. */
export function cutLines(
  groups: readonly MessageGroup[],
  { count, from }: { readonly from: number; readonly count: number },
) {
  let place = 0;
  const shown = groups.map(({ diagnostics, ...group }) => {
    const messages: ShownMessage[] = [];
    for (const diagnostic of diagnostics) {
      const lines = countLines(diagnostic);
      const until = Math.min(lines, from + count - place);
      const first = Math.max(0, from - place);
      if (first < until) messages.push({ diagnostic, from: first, until });
      place += lines;
    }
    return { ...group, messages };
  });
  return { groups: shown.filter(({ messages }) => messages.length > 0), total: place };
}

/** All messages as a text without colors, in the order in which they came. */
export function messagesAsText(groups: readonly MessageGroup[]): string {
  return groups
    .flatMap(({ diagnostics, urn }) => diagnostics.map((diagnostic) => ({ ...diagnostic, urn })))
    .sort((one, other) => one.sequence - other.sequence)
    .map(({ message, severity, timestamp, urn }) => {
      const time = new Date(timestamp * 1000).toISOString();
      return `${time} ${severity}${urn === null ? '' : ` ${urn}`}\n${stripColors(message.trimEnd())}\n`;
    })
    .join('\n');
}
