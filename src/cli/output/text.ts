/** Rows as lines of padded columns; the last column is not padded. */
export function alignColumns(rows: readonly (readonly string[])[]): string[] {
  const widths = rows.reduce<number[]>(
    (found, row) => row.map((cell, at) => Math.max(cell.length, found[at] ?? 0)),
    [],
  );
  return rows.map((row) =>
    row
      .map((cell, at) => (at === row.length - 1 ? cell : cell.padEnd(widths[at] as number)))
      .join('  ')
      .trimEnd(),
  );
}

/** A size in bytes as text for people. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const at = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), units.length - 1);
  return `${(bytes / 1024 ** at).toFixed(at === 0 ? 0 : 1)} ${units[at]}`;
}

/** `1 stack`, `2 stacks`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** A word of a command, quoted for a shell. */
export function shellQuoted(word: string): string {
  return /^[\w./:@-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
