import { locale } from './locale.ts';
/** `1 stack`, `2 stacks`. */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString(locale)} ${noun}${count === 1 ? '' : 's'}`;
}
