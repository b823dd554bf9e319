import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useDeferredValue } from 'react';
import type { StackItem } from '../platform/app/procedure-types.ts';
import { trpc } from '../platform/app/trpc.ts';
import { ages, type StackField, stackFields, type TypedTerm } from './stack-terms.ts';

const limit = 12;

export interface Suggestion {
  readonly value: string;
  readonly hint?: string;
}

export type Suggesting = Pick<StackItem, 'active' | 'project' | 'tags'>;

/** Names of fields, or values of the field. Without an organization, values come from the listed stacks. */
export function useSuggestions(
  { field, text: typed }: TypedTerm,
  organization: string | undefined,
  items: readonly Suggesting[],
  isEnabled: boolean,
): readonly Suggestion[] {
  const text = useDeferredValue(typed);
  const options = (of: StackField) => ({
    placeholderData: keepPreviousData,
    retry: false,
    staleTime: 30_000,
    enabled: isEnabled && organization !== undefined && field === of,
  });
  const within = { organization: organization ?? '', limit };
  const [tagName = '', ...tagValue] = text.split('=');
  const tag = tagValue.length > 0 ? { name: tagName, text: tagValue.join('=') } : { text: tagName };
  const members = useQuery(trpc.members.list.queryOptions({ ...within, text }, options('owner')));
  const tags = useQuery(trpc.stacks.tags.queryOptions({ ...within, ...tag }, options('tag')));
  const stacks = useQuery(trpc.stacks.list.queryOptions({ ...within, text }, options('project')));
  if (field === null) {
    const begins = stackFields.filter(({ name }) => `${name}:`.startsWith(typed.toLowerCase()));
    return begins.map(({ hint, name }) => ({ value: `${name}:`, hint }));
  }
  if (field === 'updated') return ages.filter(({ value }) => value.startsWith(typed));
  const values = {
    owner: () => members.data?.items.map(({ login }) => login) ?? items.map(({ active }) => active?.by ?? ''),
    tag: () =>
      tags.data?.items.map((each) => ('name' in tag ? `${tagName}=${each}` : each)) ??
      items.flatMap(({ tags: own }) => Object.entries(own).map(([name, value]) => `${name}=${value}`)),
    project: () => (stacks.data?.items ?? items).map(({ project }) => project),
  }[field]();
  const begins = values.filter((value) => value !== '' && value.toLowerCase().startsWith(typed.toLowerCase()));
  return [...new Set(begins)].slice(0, limit).map((value) => ({ value }));
}
