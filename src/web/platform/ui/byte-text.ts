import { oneDecimal } from './locale.ts';

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

/** A human-readable size in bytes: "812 B", "3.4 MiB". */
export function byteText(bytes: number): string {
  let value = Math.max(0, bytes);
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : oneDecimal.format(value)} ${units[unit]}`;
}

/** "0.8 ms", "34 ms", "1.2 s". */
export function msText(ms: number): string {
  if (ms >= 1000) return `${oneDecimal.format(ms / 1000)} s`;
  return `${ms < 10 ? oneDecimal.format(ms) : Math.round(ms)} ms`;
}
