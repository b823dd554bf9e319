import { expect, test } from '@jest/globals';
import type { GraphBox, GraphChoice, GraphData } from './graph-data.ts';
import { movesBetween } from './graph-moves.ts';
import { growTree } from './graph-tree.ts';
import { viewTree } from './graph-view.ts';

/** A root with buckets of these names, more of which are one group. */
function buckets(...names: readonly string[]): GraphData {
  return {
    names: ['root', ...names],
    kinds: names.includes('aa') ? ['Rule', 'Stack', 'Bucket'] : ['Stack', 'Bucket'],
    kindOf: [names.includes('aa') ? 1 : 0, ...names.map(() => (names.includes('aa') ? 2 : 1))],
    parents: [-1, ...names.map(() => 0)],
    needs: [[], ...names.map(() => [])],
  };
}

const many = Array.from({ length: 20 }, (_, at) => `b${at}`);
const former = buckets(...many);
const latest = buckets('aa', ...many);
const movedChoice = (of: GraphChoice, from: GraphData, to: GraphData) => movesBetween(from, to).choice(of);
const choice: GraphChoice = {
  ...{ expanded: ['t0', 'g0 1'], added: ['t3'], more: { roots: 1, 'g0 1': 25, 't4 needs': 12 } },
  ...{ focus: 5, isRevealed: false, isNear: false },
};

test('what is expanded and chosen is the same after another thing came before it', () => {
  expect(movedChoice(choice, former, latest)).toEqual({
    ...{ ...choice, expanded: ['t0', 'g0 2'], added: ['t4'], more: { roots: 1, 'g0 2': 25, 't5 needs': 12 } },
    focus: 6,
  });
  expect(movedChoice(movedChoice(choice, former, latest), latest, former)).toEqual(choice);
  expect(viewTree(growTree(latest), movedChoice(choice, former, latest)).boxes.map(({ name }) => name)).toContain('aa');
});

test('what is gone is left out', () => {
  const fewer = buckets(...many.slice(1), 'c');
  const gone = movedChoice({ ...choice, focus: 1, added: ['t1', 't2'], more: { 't1 needs': 12 } }, former, fewer);
  expect(gone).toMatchObject({ focus: null, added: ['t1'], more: {} });
});

test('a box of the picture before is found in newer data by its name', () => {
  const box = viewTree(growTree(former), choice).boxes.find(({ name }) => name === 'b7') as GraphBox;
  const moved = movesBetween(former, latest).box(box);
  expect([moved?.id, moved?.thing, moved?.parent]).toEqual(['t9', 9, 'g0 2']);
  expect(movesBetween(former, buckets('b1')).box(box)).toBeNull();
});
