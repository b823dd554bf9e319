import { type AgeLimit, parseAge, SearchQueryError } from '../../shared/search/search-query.ts';

/** What the text above the list of stacks asks for: all of it. */
export interface StackQuery {
  /** Parts of `project/stack`, in any case. */
  readonly words: readonly string[];
  /** Who holds the lock, with `*` for any characters. */
  readonly owner: string | null;
  readonly updated: AgeLimit | null;
}

/** Reads words, `owner:LOGIN` and `updated:<7d`. Throws SearchQueryError. */
export function parseStackQuery(text: string): StackQuery {
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
