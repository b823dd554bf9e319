export const stackTabs = [
  'overview',
  'updates',
  'trends',
  'resources',
  'versions',
  'configuration',
  'access',
  'webhooks',
  'interrupted',
] as const;
export type StackTab = (typeof stackTabs)[number];

export interface StackPageSearch {
  readonly tab?: StackTab | undefined;
  /** Also lists previews. */
  readonly previews?: '1' | undefined;
  /** Filters of resources, their display, and the open one. */
  readonly text?: string | undefined;
  readonly type?: string | undefined;
  readonly shape?: 'tree' | 'graph' | undefined;
  readonly urn?: string | undefined;
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  /** The view of versions: their differences by default. */
  readonly show?: 'state' | 'stacks' | undefined;
  /** The other stack of a comparison: `organization/project/stack`. */
  readonly other?: string | undefined;
  /** Also compares outputs, or secrets. */
  readonly outputs?: '1' | undefined;
  readonly secrets?: '1' | undefined;
  /** Shows which version set each property of the open resource. */
  readonly blame?: '1' | undefined;
  readonly webhook?: string | undefined;
  readonly delivery?: string | undefined;
}

/** Drops invalid parameters. */
export function parseStackPageSearch(search: Readonly<Record<string, unknown>>): StackPageSearch {
  const text = (name: string): string | undefined => {
    const value = search[name];
    return typeof value === 'string' && value !== '' ? value : undefined;
  };
  const version = (name: string): number | undefined => {
    const value = String(search[name] ?? '');
    return /^\d{1,9}$/.test(value) ? Number(value) : undefined;
  };
  const flag = (name: string): '1' | undefined => (search[name] === '1' ? '1' : undefined);
  return {
    tab: stackTabs.find((each) => each === search['tab']),
    previews: flag('previews'),
    text: text('text'),
    type: text('type'),
    shape: (['tree', 'graph'] as const).find((each) => each === search['shape']),
    urn: text('urn'),
    from: version('from'),
    to: version('to'),
    show: (['state', 'stacks'] as const).find((each) => each === search['show']),
    other: text('other'),
    outputs: flag('outputs'),
    secrets: flag('secrets'),
    blame: flag('blame'),
    webhook: text('webhook'),
    delivery: text('delivery'),
  };
}
