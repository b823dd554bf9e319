import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { showMore, toggleBox } from './graph-choice.ts';
import type { GraphBox, GraphChoice, GraphData } from './graph-data.ts';
import { growTree } from './graph-tree.ts';
import { viewNeighborhood, viewTree } from './graph-view.ts';

const atFirst: GraphChoice = { expanded: null, added: [], more: {}, focus: null, isRevealed: true, isNear: false };

/** A root with `count` services, each with a database and a bucket that depends on it. */
function services(count: number): GraphData {
  const names = ['root'];
  const kindOf = [0];
  const parents = [-1];
  const needs: number[][] = [[]];
  for (let at = 0; at < count; at++) {
    const service = names.length;
    names.push(`service-${at}`, `database-${at}`, `bucket-${at}`);
    kindOf.push(1, 2, 3);
    parents.push(0, service, service);
    needs.push([], [], [service + 1, ...(at > 0 ? [2] : [])]);
  }
  return { names, kinds: ['Stack', 'Service', 'Database', 'Bucket'], kindOf, parents, needs };
}

describe('what a graph shows', () => {
  test('a small graph is shown whole', () => {
    const { boxes, edges } = viewTree(growTree(services(3)), atFirst);
    expect(boxes.map(({ name }) => name).sort()).toEqual([...services(3).names].sort());
    const dependencies = edges.filter(({ isParent }) => !isParent);
    expect(dependencies).toContainEqual({ from: 't9', to: 't8', isParent: false });
    expect(dependencies).toHaveLength(5);
  });

  test('a large one is collapsed by kind, with counts', () => {
    const { boxes, edges } = viewTree(growTree(services(1_000)), atFirst);
    expect(boxes.map(({ detail, name }) => `${name}: ${detail}`)).toEqual([
      'root: Stack, 3,000 inside',
      'Service: 1,000 resources, 2,000 inside',
    ]);
    expect(edges).toEqual([{ from: 'g0 1', to: 't0', isParent: true }]);
  });

  test('dependencies of what is hidden are those of the box that stands for it', () => {
    const tree = growTree(services(1_000));
    const { boxes, edges } = viewTree(tree, { ...atFirst, expanded: ['t0', 'g0 1', 't1'] });
    expect(boxes.find(({ shape }) => shape === 'more')?.name).toBe('975 more');
    // The buckets of all services depend on the first database.
    expect(edges).toContainEqual({ from: 'm g0 1', to: 't2', isParent: false });
    expect(edges).toContainEqual({ from: 't4', to: 't2', isParent: false });
  });

  test('a thing that is chosen is shown wherever it is', () => {
    const { boxes } = viewTree(growTree(services(1_000)), { ...atFirst, focus: 2_999 });
    expect(boxes.map(({ name }) => name)).toContain('database-999');
  });

  test('the neighborhood of a thing ends with a box for the rest, which can be shown', () => {
    const tree = growTree(services(100));
    const near = viewNeighborhood(tree, { ...atFirst, focus: 2 }, 2);
    expect(near.boxes.map(({ name }) => name)).toEqual(expect.arrayContaining(['service-0', 'bucket-0', '88 more']));
    const all = viewNeighborhood(tree, { ...atFirst, focus: 2, more: { 't2 needed': 88 } }, 2);
    expect(all.boxes).toHaveLength(102);
  });

  test('a box that is expanded before all is drawn is expanded besides what fits', () => {
    const tree = growTree(services(3));
    const near: GraphChoice = { ...atFirst, focus: 2, isNear: true };
    const shown = { choice: near, drawing: { view: viewNeighborhood(tree, near, 2) } };
    const service = shown.drawing.view.boxes.find(({ name }) => name === 'service-0');
    const names = (choice: GraphChoice) => viewTree(tree, choice).boxes.map(({ name }) => name);
    const all = names({ ...near, isNear: false });
    expect(all).toContain('database-2');
    const expanded = toggleBox({ ...near, isNear: false }, shown, service as GraphBox);
    expect(names(expanded)).toEqual(all);
    const more = { ...(service as GraphBox), id: 'm t2 needed' };
    expect(names(showMore(expanded, shown, more))).toEqual(all);
    // Then the picture says what is expanded.
    const next = { choice: expanded, drawing: { view: viewTree(tree, expanded) } };
    const last = next.drawing.view.boxes.find(({ name }) => name === 'service-2');
    expect(names(toggleBox(expanded, next, last as GraphBox))).not.toContain('database-2');
  });

  test('every thing is counted once, whatever the parents are', () => {
    const parents = fc.array(fc.integer({ min: -1, max: 29 }), { minLength: 30, maxLength: 30 });
    fc.assert(
      fc.property(parents, (found) => {
        const names = found.map((_, at) => `r${at}`);
        const data = { names, kinds: ['a'], kindOf: found.map(() => 0), parents: found, needs: found.map(() => []) };
        const tree = growTree(data);
        expect(tree.order).toHaveLength(30);
        expect(tree.roots.reduce((sum, root) => sum + 1 + (tree.below[root] as number), 0)).toBe(30);
        const { boxes } = viewTree(tree, { ...atFirst, expanded: names.map((_, at) => `t${at}`) });
        expect(new Set(boxes.map(({ id }) => id)).size).toBe(boxes.length);
      }),
    );
  });
});
