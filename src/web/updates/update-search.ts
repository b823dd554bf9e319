export const updateViews = ['progress', 'messages', 'timing', 'events', 'details'] as const;
export type UpdateView = (typeof updateViews)[number];

export interface UpdateSearch {
  readonly view?: UpdateView | undefined;
  /** Filter of the shown list. */
  readonly text?: string | undefined;
  readonly type?: string | undefined;
  /** Also shows unchanged resources. */
  readonly all?: '1' | undefined;
  /** Shows the values of all properties that change. */
  readonly values?: '1' | undefined;
  /** The number of its message and its own. */
  readonly line?: string | undefined;
  /** Whether long lines of the messages are not wrapped. */
  readonly wrap?: '0' | undefined;
}

/** Drops invalid parameters. */
export function parseUpdateSearch(search: Readonly<Record<string, unknown>>): UpdateSearch {
  const text = (name: string): string | undefined => {
    const value = search[name];
    return typeof value === 'string' && value !== '' ? value : undefined;
  };
  const view = updateViews.find((each) => each === search['view']);
  const flag = (name: string): '1' | undefined => (search[name] === '1' ? '1' : undefined);
  const line = text('line');
  return {
    ...{ view, text: text('text'), type: text('type'), all: flag('all'), values: flag('values') },
    line: line !== undefined && /^\d{1,15}-\d{1,9}$/.test(line) ? line : undefined,
    wrap: String(search['wrap']) === '0' ? '0' : undefined,
  };
}
