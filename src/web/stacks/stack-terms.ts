/** Terms of the filter that have a value. A tag and a project become parts of the URL of their own. */
export const stackFields = [
  { name: 'owner', hint: 'user who holds the lock' },
  { name: 'updated', hint: 'age of the last change' },
  { name: 'tag', hint: 'name or name=value' },
  { name: 'project', hint: 'all stacks of a project' },
] as const;
export type StackField = (typeof stackFields)[number]['name'];

export const ages = [
  { value: '<1h', hint: 'in the last hour' },
  { value: '<1d', hint: 'in the last day' },
  { value: '<7d', hint: 'in the last week' },
  { value: '<30d', hint: 'in the last month' },
  { value: '>30d', hint: 'more than a month ago' },
  { value: '>1y', hint: 'more than a year ago' },
] as const;

export interface TypedTerm {
  /** The text before the term. */
  readonly before: string;
  /** Null: a word, or the beginning of the name of a field. */
  readonly field: StackField | null;
  readonly text: string;
}

/** The term at the end of the text, which the user is typing. */
export function typedTerm(draft: string): TypedTerm {
  const term = /\S*$/.exec(draft)?.[0] ?? '';
  const before = draft.slice(0, draft.length - term.length);
  const [, name = '', value = ''] = /^(\w+):(.*)$/.exec(term) ?? [];
  const field = stackFields.find((each) => each.name === name.toLowerCase());
  return field === undefined ? { before, field: null, text: term } : { before, field: field.name, text: value };
}

/** The text that filters: without terms that have no value yet, and without those that become parts of the URL. */
export function filteringText(draft: string): string {
  const isFiltering = (term: string): boolean => !/^(?:(?:tag|project):.*|(?:owner|updated):)$/i.test(term);
  return draft.split(/\s+/).filter(isFiltering).join(' ').trim();
}
