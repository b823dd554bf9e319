import type { SearchField } from '../platform/app/procedure-types.ts';

/** Adds quotation marks if needed. */
export function quoteValue(value: string): string {
  return /^[^\s"\\]+$/.test(value) ? value : `"${value.replace(/["\\]/g, '\\$&')}"`;
}

export function addTerm(query: string, term: string): string {
  const text = query.trim();
  return ` ${text} `.includes(` ${term} `) ? text : `${text} ${term}`.trim();
}

/** The terms that select one group of a field. */
export function groupTerms(field: SearchField, name: string, version: string | null): string {
  if (field !== 'provider')
    return `${field === 'project' ? 'stack' : field}:${quoteValue(field === 'project' ? `${name}/*` : name)}`;
  if (name === '') return '-provider:*';
  return [`provider:${quoteValue(name)}`, ...(version === null ? [] : [`version:${quoteValue(version)}`])].join(' ');
}

/** The scope of the search: one organization, or all. */
export interface Within {
  readonly organization?: string;
}

export interface ResourceSearch {
  readonly q?: string | undefined;
  readonly view?: 'providers' | undefined;
  readonly by?: SearchField | undefined;
  /** All groups of the field, instead of the largest. */
  readonly groups?: 'all' | undefined;
}

const fields: readonly SearchField[] = ['type', 'stack', 'project', 'provider'];

/** Drops invalid parameters. */
export function parseResourceSearch(search: Readonly<Record<string, unknown>>): ResourceSearch {
  const { by, groups, q, view } = search;
  return {
    q: typeof q === 'string' && q !== '' ? q : undefined,
    view: view === 'providers' ? view : undefined,
    by: fields.find((each) => each === by && each !== 'type'),
    groups: groups === 'all' ? groups : undefined,
  };
}
