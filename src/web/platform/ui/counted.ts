import { numberLocale } from './locale.ts';
/** `1 stack`, `2 stacks`. */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString(numberLocale)} ${noun}${count === 1 ? '' : 's'}`;
}
