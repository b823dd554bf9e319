import type { SearchField } from '../platform/app/contract.ts';

/** A value as a query takes it: in quotation marks where it needs them. */
export function quoteValue(value: string): string {
  return /^[^\s"\\]+$/.test(value) ? value : `"${value.replace(/["\\]/g, '\\$&')}"`;
}

/** The query with one term more, unless it has it. */
export function addTerm(query: string, term: string): string {
  const text = query.trim();
  return ` ${text} `.includes(` ${term} `) ? text : `${text} ${term}`.trim();
}

/** The terms that leave one group of those by a field. */
export function groupTerms(field: SearchField, name: string, version: string | null): string {
  if (field !== 'provider')
    return `${field === 'project' ? 'stack' : field}:${quoteValue(field === 'project' ? `${name}/*` : name)}`;
  if (name === '') return '-provider:*';
  return [`provider:${quoteValue(name)}`, ...(version === null ? [] : [`version:${quoteValue(version)}`])].join(' ');
}

/** What is searched: an organization, or all. */
export interface Within {
  readonly organization?: string;
}

/** What of the page is in the URL. */
export interface ResourceSearch {
  readonly q?: string | undefined;
  readonly view?: 'providers' | undefined;
  readonly by?: SearchField | undefined;
}

const fields: readonly SearchField[] = ['type', 'stack', 'project', 'provider'];

/** Reads the search of a URL. What is not valid is left out. */
export function parseResourceSearch(search: Readonly<Record<string, unknown>>): ResourceSearch {
  const { by, q, view } = search;
  return {
    q: typeof q === 'string' && q !== '' ? q : undefined,
    view: view === 'providers' ? view : undefined,
    by: fields.find((each) => each === by && each !== 'type'),
  };
}
