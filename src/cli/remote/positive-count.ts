import { InvalidArgumentError } from 'commander';

/** Reads the value of an option that is a number of times or seconds. */
export function toCount(text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new InvalidArgumentError('It is not a positive whole number.');
  return Number(text);
}
