/** As far as tests look at a dashboard of Grafana. */
export interface Dashboard {
  readonly uid: string;
  readonly panels: readonly {
    readonly id: number;
    readonly title: string;
    readonly type: string;
    readonly gridPos: { readonly h: number; readonly w: number; readonly x: number; readonly y: number };
    readonly targets?: readonly { readonly expr: string }[];
  }[];
}

/** The queries of a dashboard's panels, with a value in place of each of its variables. */
export function queriesOf({ panels }: Dashboard): string[] {
  return panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr.replaceAll(/\$\w+/g, 'acme')));
}

export function namesIn(query: string): { metrics: string[]; labels: string[] } {
  const bare = query.replaceAll(/"[^"]*"/g, '""');
  const grouped = [...bare.matchAll(/\b(?:by|on|group_left) \(([^)]*)\)/g)].flatMap(([, names = '']) =>
    names.split(/,\s*/).filter((name) => name !== ''),
  );
  const compared = [...bare.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*""/g)].map(([, name = '']) => name);
  const metrics = bare.match(/\b(?:holdfast|process|nodejs)_\w+/g) ?? [];
  return { metrics, labels: [...new Set([...grouped, ...compared])] };
}
