import { readFile, writeFile } from 'node:fs/promises';

/** Returns the median; NaN without values. */
export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}

/** `share` (0 to 1) of the values lie below it. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** Prints a Markdown table. Numbers get two decimals. */
export function printTable(head: readonly string[], rows: readonly (readonly (string | number)[])[]): void {
  const show = (cell: string | number): string =>
    typeof cell === 'string' ? cell : Number.isNaN(cell) ? '' : cell.toFixed(2);
  console.log(`| ${head.join(' | ')} |`);
  console.log(`|${head.map(() => ' --- ').join('|')}|`);
  for (const row of rows) console.log(`| ${row.map(show).join(' | ')} |`);
}

/** Returns the current and the peak resident memory of a process, in MB (Linux). */
export async function memoryOf(pid: number): Promise<{ now: number; peak: number }> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const read = (name: string): number =>
    Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1] ?? Number.NaN) / 1024;
  return { now: read('VmRSS'), peak: read('VmHWM') };
}

/** Resets the peak of `memoryOf` (Linux). */
export async function resetPeak(pid: number): Promise<void> {
  await writeFile(`/proc/${pid}/clear_refs`, '5');
}

const ticksPerSecond = 100;

/** Returns the CPU time of a process and its threads, in seconds (Linux). */
export async function cpuSecondsOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

/** Returns the event loop delay of a server since the last request for its metrics, in ms. */
export async function loopDelayOf(url: string): Promise<{ p99: number; max: number }> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const read = (name: string): number =>
    Number(new RegExp(`^${name} (\\S+)`, 'm').exec(text)?.[1] ?? Number.NaN) * 1000;
  return { p99: read('nodejs_eventloop_lag_p99_seconds'), max: read('nodejs_eventloop_lag_max_seconds') };
}

/** Returns the load average of the last minute (Linux). */
export async function loadAverage(): Promise<string> {
  return (await readFile('/proc/loadavg', 'utf8')).split(' ')[0] as string;
}
