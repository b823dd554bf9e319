import { stackTermTexts } from './texts.tsx';
/** A tag and a project become separate parameters of the URL. */
export const stackFields = [
  { name: 'owner', hint: stackTermTexts.owner },
  { name: 'updated', hint: stackTermTexts.updated },
  { name: 'tag', hint: stackTermTexts.tag },
  { name: 'project', hint: stackTermTexts.project },
] as const;
export type StackField = (typeof stackFields)[number]['name'];

export const ages = [
  { value: '<1h', hint: stackTermTexts.hour },
  { value: '<1d', hint: stackTermTexts.day },
  { value: '<7d', hint: stackTermTexts.week },
  { value: '<30d', hint: stackTermTexts.month },
  { value: '>30d', hint: stackTermTexts.moreThanMonth },
  { value: '>1y', hint: stackTermTexts.moreThanYear },
] as const;

export interface TypedTerm {
  readonly before: string;
  /** Null: a word, or the beginning of the name of a field. */
  readonly field: StackField | null;
  readonly text: string;
}

/** The term is at the end of the text. */
export function typedTerm(draft: string): TypedTerm {
  const term = /\S*$/.exec(draft)?.[0] ?? '';
  const before = draft.slice(0, draft.length - term.length);
  const [, name = '', value = ''] = /^(\w+):(.*)$/.exec(term) ?? [];
  const field = stackFields.find((each) => each.name === name.toLowerCase());
  return field === undefined ? { before, field: null, text: term } : { before, field: field.name, text: value };
}

/** The text that filters: without terms that have no value yet, and without terms that become parameters of the URL. */
export function filteringText(draft: string): string {
  const isFiltering = (term: string): boolean => !/^(?:(?:tag|project):.*|(?:owner|updated):)$/i.test(term);
  return draft.split(/\s+/).filter(isFiltering).join(' ').trim();
}
