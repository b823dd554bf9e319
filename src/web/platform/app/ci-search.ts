/** The view of the CI page, in the URL. */
export interface CiSearch {
  readonly view?: CiView | undefined;
  readonly days?: CiDays | undefined;
  readonly reason?: string | undefined;
  readonly project?: string | undefined;
  readonly sort?: ProjectOrder | undefined;
}

/** The views; the first one is the default. */
export const ciViews = ['queue', 'runs', 'refusals', 'drift', 'delivery'] as const;
export type CiView = (typeof ciViews)[number];
export const ciPeriods = [7, 30, 90] as const;
export type CiDays = (typeof ciPeriods)[number];
export const projectOrders = ['slowest', 'failures', 'queue', 'runs'] as const;
export type ProjectOrder = (typeof projectOrders)[number];

const maxChars = 200;

/** Drops invalid parameters. */
export function parseCiSearch(search: Readonly<Record<string, unknown>>): CiSearch {
  const text = (value: unknown): string | undefined =>
    typeof value === 'string' && value !== '' && value.length <= maxChars ? value : undefined;
  return {
    view: ciViews.find((view) => view === search['view'] && view !== 'queue'),
    days: ciPeriods.find((days) => String(days) === String(search['days']) && days !== 7),
    reason: text(search['reason']),
    project: text(search['project']),
    sort: projectOrders.find((order) => order === search['sort'] && order !== 'slowest'),
  };
}
