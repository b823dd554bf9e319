export const activityKinds = ['updates', 'previews', 'approvals', 'freezes', 'stacks'] as const;
export type ActivityKind = (typeof activityKinds)[number];

/** `stack` is a project, or `project/stack`. */
export interface ActivitySearch {
  readonly kind?: ActivityKind | undefined;
  readonly who?: string | undefined;
  readonly stack?: string | undefined;
}

/** Reads the filters. Invalid ones are dropped. */
export function parseActivitySearch(search: Readonly<Record<string, unknown>>): ActivitySearch {
  const text = (name: string): string | undefined => {
    const value = search[name];
    return typeof value === 'string' && value !== '' ? value.slice(0, 400) : undefined;
  };
  return { kind: activityKinds.find((each) => each === search['kind']), who: text('who'), stack: text('stack') };
}

/** The filters in the form that the server takes. */
export function toActivityQuery({ kind, stack = '', who }: ActivitySearch) {
  const [project = '', name = ''] = stack.split('/', 2).map((part) => part.trim().slice(0, 200));
  return {
    ...(kind === undefined ? {} : { kind }),
    ...(who === undefined ? {} : { by: who }),
    ...(project === '' ? {} : { project }),
    ...(project === '' || name === '' ? {} : { stack: name }),
  };
}
