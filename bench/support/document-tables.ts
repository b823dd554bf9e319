/** A table of a document. */
export interface Table {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** A figure as the document has it, and its value: of a range the upper end. */
export interface Figure {
  readonly text: string;
  readonly value: number;
}

const number = String.raw`\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?`;
const figure = new RegExp(`(${number})(?:–(${number})| ± (?:${number}))?`, 'g');

/** Returns the figures of a cell: two of `2.2, 1.4`, `119/193` and `0.97 (1.20)`, one of `1,449`, `19–27` and `2.5 ± 1.2`. */
export function figuresOf(cell: string): Figure[] {
  return [...cell.matchAll(figure)].map(([text, first = '', last]) => ({
    text,
    value: Number((last ?? first).replaceAll(',', '')),
  }));
}

/**
 * Returns the tables of a document that have charts, by the names of the charts: the image `images/NAME.svg`, alone in its line,
 * shows the last table above it in its section. One table may have several.
 */
export function chartedTables(document: string): Map<string, Table> {
  const tables = new Map<string, Table>();
  let lines: string[] = [];
  let isInTable = false;
  for (const line of document.split('\n')) {
    const isRow = line.startsWith('|');
    if (isRow && !isInTable) lines = [];
    if (isRow) lines.push(line);
    isInTable = isRow;
    if (/^#+ /.test(line)) lines = [];
    const [, name] = /^!\[[^\]]*\]\(images\/([\w-]+)\.svg\)$/.exec(line) ?? [];
    if (name === undefined) continue;
    if (lines.length === 0) throw new Error(`images/${name}.svg has no table above it in its section`);
    if (tables.has(name)) throw new Error(`images/${name}.svg is shown twice`);
    tables.set(name, tableOf(lines));
  }
  return tables;
}

/** Returns the index of the column whose head is `name`, or begins with it. */
export function columnOf({ head }: Table, name: string): number {
  const exact = head.indexOf(name);
  const at = exact >= 0 ? exact : head.findIndex((cell) => cell.startsWith(name));
  if (at < 0) throw new Error(`the table | ${head.join(' | ')} | has no column "${name}"`);
  return at;
}

function tableOf(lines: readonly string[]): Table {
  const [head = [], , ...rows] = lines.map(cellsOf);
  for (const row of rows)
    if (row.length !== head.length)
      throw new Error(`the row | ${row.join(' | ')} | has ${row.length} cells, not ${head.length}`);
  return { head, rows };
}

function cellsOf(line: string): string[] {
  const cells = line.trim().split(/(?<!\\)\|/);
  return cells.slice(1, -1).map((cell) => cell.replaceAll('\\|', '|').replaceAll('`', '').trim());
}
