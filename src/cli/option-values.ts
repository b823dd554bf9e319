import { InvalidArgumentError } from 'commander';

/** The option can be repeated. */
export function collect(value: string, earlier: readonly string[] = []): string[] {
  return [...earlier, value];
}

/** Throws InvalidArgumentError. */
export function toCount(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('It is not a positive whole number.');
  return Number(text);
}
