import { describe, expect, test } from '@jest/globals';
import { layOutGraph, maxGraphNodes } from './graph-layout.ts';

const size = { width: 200, height: 48 };

describe('the layout of a graph', () => {
  test('puts dependencies left of their dependents', () => {
    const nodes = ['vm', 'subnet', 'network'].map((id) => ({ id }));
    const edges = [
      { from: 'vm', to: 'subnet' },
      { from: 'subnet', to: 'network' },
    ];
    const at = new Map(layOutGraph(nodes, edges, size).nodes.map((node) => [node.id, node.x]));
    expect(at.get('network')).toBeLessThan((at.get('subnet') as number) - size.width);
    expect(at.get('subnet')).toBeLessThan((at.get('vm') as number) - size.width);
  });

  test('never lets nodes overlap', () => {
    const nodes = Array.from({ length: 60 }, (_, at) => ({ id: `r${at}` }));
    const edges = nodes.flatMap(({ id }, at) => (at === 0 ? [] : [{ from: id, to: `r${Math.floor(at / 3)}` }]));
    const placed = layOutGraph(nodes, edges, size).nodes;
    for (const one of placed) {
      for (const other of placed) {
        if (one === other) continue;
        expect(Math.abs(one.x - other.x) >= size.width || Math.abs(one.y - other.y) >= size.height).toBe(true);
      }
    }
  });

  test('leaves out edges to nodes that are not shown, repeated ones and circles of one', () => {
    const edges = [
      { from: 'a', to: 'b' },
      { from: 'a', to: 'b' },
      { from: 'a', to: 'a' },
      { from: 'a', to: 'gone' },
    ];
    expect(layOutGraph([{ id: 'a' }, { id: 'b' }, { id: 'a' }], edges, size).edges).toEqual([{ from: 'a', to: 'b' }]);
  });

  test('keeps the first nodes of a large graph and says how many it left out', () => {
    const nodes = Array.from({ length: maxGraphNodes + 7 }, (_, at) => ({ id: `r${at}` }));
    const { nodes: placed, omittedCount } = layOutGraph(nodes, [], size);
    expect([placed.length, omittedCount]).toEqual([maxGraphNodes, 7]);
  });

  test('a layer of many nodes is split into columns, so that they can be read', () => {
    const many = Array.from({ length: 60 }, (_, at) => ({ id: `reader-${at}` }));
    const edges = many.map(({ id }) => ({ from: id, to: 'hub' }));
    const { height, nodes, width } = layOutGraph([{ id: 'hub' }, ...many], edges, size);
    expect(new Set(nodes.map(({ x, y }) => `${x} ${y}`)).size).toBe(61);
    // It fits on the page, unlike one column: 60 nodes are 4,000 pixels high.
    expect(Math.min(980 / width, 520 / height)).toBeGreaterThan(0.5);
    const hub = nodes.find(({ id }) => id === 'hub');
    for (const { id, x, y } of nodes) {
      expect(id === 'hub' || x > (hub?.x ?? 0) + size.width).toBe(true);
      expect(x >= 0 && y >= 0 && x + size.width <= width && y + size.height <= height).toBe(true);
    }
  });
});
