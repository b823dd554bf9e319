import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { GraphEdge } from './graph-data.ts';
import { layOutGraph } from './graph-layout.ts';

const size = { width: 200, height: 48 };
const edge = (from: string, to: string): GraphEdge => ({ from, to, isParent: false });

describe('the layout of a graph', () => {
  test('puts dependencies left of their dependents', () => {
    const edges = [edge('vm', 'subnet'), edge('subnet', 'network')];
    const { boxes } = layOutGraph(['vm', 'subnet', 'network'], edges, size);
    const at = new Map(boxes.map(({ id, x }) => [id, x]));
    expect(at.get('network')).toBeLessThan((at.get('subnet') as number) - size.width);
    expect(at.get('subnet')).toBeLessThan((at.get('vm') as number) - size.width);
  });

  test('lets no boxes overlap, and leads no edge over a box, whatever the graph', () => {
    const graphs = fc.integer({ min: 1, max: 40 }).chain((count) => {
      const place = fc.integer({ min: 0, max: count - 1 });
      return fc.record({ count: fc.constant(count), pairs: fc.array(fc.tuple(place, place), { maxLength: 60 }) });
    });
    fc.assert(
      fc.property(graphs, ({ count, pairs }) => {
        const unique = new Map(
          pairs.filter(([a, b]) => a !== b).map(([a, b]) => [`${a} ${b}`, edge(`r${a}`, `r${b}`)]),
        );
        const ids = Array.from({ length: count }, (_, at) => `r${at}`);
        expectClear(layOutGraph(ids, [...unique.values()], size));
      }),
      { numRuns: 25 },
    );
  });

  test('a layer of many boxes is split into columns', () => {
    const many = Array.from({ length: 60 }, (_, at) => `reader-${at}`);
    const found = layOutGraph(
      ['hub', ...many],
      many.map((id) => edge(id, 'hub')),
      size,
    );
    expectClear(found);
    expect(found.height).toBeLessThan(1_500);
    const hub = found.boxes.find(({ id }) => id === 'hub');
    for (const { id, x } of found.boxes) expect(id === 'hub' || x > (hub?.x ?? 0) + size.width).toBe(true);
  });
});

function expectClear({ boxes, edges, height, width }: ReturnType<typeof layOutGraph>): void {
  const overlaps = boxes.filter((one) =>
    boxes.some(
      (other) => one !== other && Math.abs(one.x - other.x) < size.width && Math.abs(one.y - other.y) < size.height,
    ),
  );
  expect(overlaps).toEqual([]);
  for (const { x, y } of boxes) {
    expect([x >= 0, y >= 0, x + size.width <= width, y + size.height <= height]).toEqual([true, true, true, true]);
  }
  for (const { from, points, to } of edges) {
    const crossed = boxes.filter(
      ({ id, x, y }) =>
        id !== from &&
        id !== to &&
        points.some((point, at) => {
          const next = points[at + 1];
          if (next === undefined) return false;
          const isBeside = Math.max(point.x, next.x) <= x + 1 || Math.min(point.x, next.x) >= x + size.width - 1;
          return !isBeside && Math.max(point.y, next.y) > y && Math.min(point.y, next.y) < y + size.height;
        }),
    );
    expect({ from, to, crossed }).toEqual({ from, to, crossed: [] });
  }
}
