export const stackTabs = ['overview', 'updates', 'configuration'] as const;
export type StackTab = (typeof stackTabs)[number];

/** What of a stack's page is in the URL. */
export interface StackPageSearch {
  readonly tab?: StackTab | undefined;
  /** Also lists previews. */
  readonly previews?: '1' | undefined;
}

/** Reads the search of a URL. What is not valid is left out. */
export function parseStackPageSearch(search: Readonly<Record<string, unknown>>): StackPageSearch {
  return {
    tab: stackTabs.find((each) => each === search['tab']),
    previews: search['previews'] === '1' ? '1' : undefined,
  };
}
