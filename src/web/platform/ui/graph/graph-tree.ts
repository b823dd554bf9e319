import type { GraphData } from './graph-data.ts';

/** The things of a graph by their parents. */
export interface GraphTree {
  readonly data: GraphData;
  readonly roots: readonly number[];
  /** By thing: its children. */
  readonly children: readonly (readonly number[])[];
  /** By thing: number of its descendants. */
  readonly below: readonly number[];
  /** Every parent before its children. */
  readonly order: readonly number[];
  /** By thing; -1 for none. Safe for cycles, which a damaged state may contain. */
  readonly parents: readonly number[];
  /** By thing: its dependents. */
  readonly neededBy: readonly (readonly number[])[];
}

/** Orders the things of a graph by their parents. */
export function growTree(data: GraphData): GraphTree {
  const count = data.names.length;
  const parents = [...data.parents];
  const children: number[][] = Array.from({ length: count }, () => []);
  const neededBy: number[][] = Array.from({ length: count }, () => []);
  const roots: number[] = [];
  for (let at = 0; at < count; at++) {
    const parent = parents[at] ?? -1;
    if (parent < 0) roots.push(at);
    else children[parent]?.push(at);
    for (const need of data.needs[at] ?? []) neededBy[need]?.push(at);
  }
  const order: number[] = [];
  const isVisited = new Uint8Array(count);
  const visit = (from: number): void => {
    const first = order.length;
    order.push(from);
    isVisited[from] = 1;
    for (let next = first; next < order.length; next++) {
      for (const child of children[order[next] as number] ?? []) {
        if (isVisited[child]) continue;
        isVisited[child] = 1;
        order.push(child);
      }
    }
  };
  for (const root of roots) visit(root);
  for (let at = 0; at < count; at++) {
    if (isVisited[at]) continue;
    // Breaks a cycle of parents here.
    const circle = children[parents[at] as number] ?? [];
    circle.splice(circle.indexOf(at), 1);
    parents[at] = -1;
    roots.push(at);
    visit(at);
  }
  const below = new Array<number>(count).fill(0);
  for (const at of order.toReversed()) {
    const parent = parents[at] as number;
    if (parent >= 0) below[parent] = (below[parent] as number) + (below[at] as number) + 1;
  }
  return { data, roots, children, below, order, parents, neededBy };
}
