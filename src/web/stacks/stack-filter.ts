import type { StackFilter } from '../platform/app/procedure-types.ts';

export const stackStatuses = ['running', 'failed', 'interrupted', 'drifted', 'frozen'] as const;
export type StackStatus = (typeof stackStatuses)[number];

/** `tag` is `name` or `name=value`. */
export interface StackSearch {
  readonly text?: string | undefined;
  readonly project?: string | undefined;
  readonly tag?: string | undefined;
  readonly status?: StackStatus | undefined;
  /** Columns of the list, separated by commas. */
  readonly columns?: string | undefined;
}

/** Drops invalid parameters. */
export function parseStackFilter(search: Readonly<Record<string, unknown>>): StackSearch {
  const text = (name: string): string | undefined => {
    const value = search[name];
    return typeof value === 'string' && value !== '' ? value : undefined;
  };
  const status = stackStatuses.find((each) => each === search['status']);
  return { text: text('text'), project: text('project'), tag: text('tag'), status, columns: text('columns') };
}

/** The filter in the form that the server takes. */
export function toQuery(search: StackSearch, organization: string | undefined): StackFilter {
  const { project, status, tag } = search;
  const text = search.text?.trim();
  return {
    ...(organization === undefined ? {} : { organization }),
    ...(text ? { text } : {}),
    ...(project === undefined ? {} : { project }),
    ...(status === undefined ? {} : { status }),
    ...(tag === undefined ? {} : { tag: parseTag(tag) }),
  };
}

/** Reads `name=value` or `name`. */
export function parseTag(tag: string): { readonly name: string; readonly value?: string } {
  const at = tag.indexOf('=');
  return at <= 0 ? { name: tag } : { name: tag.slice(0, at), value: tag.slice(at + 1) };
}
