import { readFile } from 'node:fs/promises';

/** The middle value; NaN of none. */
export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}

/** The value below which `share` of the values lie. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** Prints a Markdown table; numbers with two digits. */
export function printTable(head: readonly string[], rows: readonly (readonly (string | number)[])[]): void {
  const show = (cell: string | number): string =>
    typeof cell === 'string' ? cell : Number.isNaN(cell) ? '' : cell.toFixed(2);
  console.log(`| ${head.join(' | ')} |`);
  console.log(`|${head.map(() => ' --- ').join('|')}|`);
  for (const row of rows) console.log(`| ${row.map(show).join(' | ')} |`);
}

/** Resident memory of a process now and at its highest, in MB (Linux). */
export async function memoryOf(pid: number): Promise<{ now: number; peak: number }> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const read = (name: string): number =>
    Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1] ?? Number.NaN) / 1024;
  return { now: read('VmRSS'), peak: read('VmHWM') };
}
