import { type Static, Type } from 'typebox';
import { SearchQueryError } from '../platform/http/search-query-error.ts';
import { type AgeLimit, parseAge } from '../search/search-query.ts';

export const StatusFilter = Type.Union([
  Type.Literal('running'),
  Type.Literal('failed'),
  Type.Literal('interrupted'),
  Type.Literal('drifted'),
  Type.Literal('frozen'),
]);
export type StatusFilter = Static<typeof StatusFilter>;

/** A stack must match all parts. */
interface StackFilter {
  /** Parts of `project/stack`, in any case. */
  readonly words: readonly string[];
  /** The lock holder, where `*` matches any characters. */
  readonly owner: string | null;
  readonly updated: AgeLimit | null;
}

/** Reads words, `owner:LOGIN` and `updated:<7d`. Throws SearchQueryError. */
export function parseStackFilter(text: string): StackFilter {
  const words: string[] = [];
  let owner: string | null = null;
  let updated: AgeLimit | null = null;
  for (const { 0: term, index: start } of text.matchAll(/\S+/g)) {
    const [, field = '', value = ''] = /^(owner|updated):(.*)$/is.exec(term) ?? [];
    const valueStart = start + field.length + 1;
    const end = start + term.length;
    if (field === '') words.push(term);
    else if (value === '') throw new SearchQueryError(`${field}: needs a value`, start, end);
    else if (field.toLowerCase() === 'owner') owner = value;
    else {
      const age = parseAge(value);
      if (typeof age === 'string') throw new SearchQueryError(`updated: ${age}`, valueStart, end);
      updated = age;
    }
  }
  return { words, owner, updated };
}
