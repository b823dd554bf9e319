import { expect, test } from '@jest/globals';
import type { StateScan } from '../../platform/admission/state-scans.ts';
import type { createResourceRepository, ResourceEdges } from '../../search/resource-repository.ts';
import { readGraph } from './read-graph.ts';

test('a large graph is computed in many parts', async () => {
  const count = 20_000;
  const edges = Array.from({ length: count }, (_, at): ResourceEdges => {
    const name = `r${at}`;
    const parent = at === 0 ? null : 'k0';
    return {
      place: name,
      key: `k${at}`,
      urn: `urn::${name}`,
      name,
      parent,
      dependencies: [`k${at + 1}`, `k${at + 1}`],
    };
  });
  let pauses = 0;
  const pause = async () => void pauses++;
  const scan = { begin: async () => {}, hold: async () => {}, pause } as unknown as StateScan;
  /** Pages may be short: it ends with an empty one. */
  const listEdges = async (_stackId: string, after: ResourceEdges | null) => {
    const from = after === null ? 0 : edges.indexOf(after) + 1;
    return edges.slice(from, from + 3_000);
  };
  const rows = { listEdges } as unknown as ReturnType<typeof createResourceRepository>;
  const { heads, needs, parents } = await readGraph(scan, rows, 'stack', 'org');
  expect([heads, needs.length, needs[7], needs.at(-1)]).toEqual([['urn::'], count, [8], []]);
  expect(parents.slice(0, 3)).toEqual([-1, 0, 0]);
  expect(pauses).toBeGreaterThanOrEqual(40);
});
