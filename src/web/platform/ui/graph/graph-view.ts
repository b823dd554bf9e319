import type { GraphBox, GraphChoice, GraphEdge, GraphView } from './graph-data.ts';
import type { GraphTree } from './graph-tree.ts';
import { graphBoxTexts } from './texts.ts';

/** Of a box, at first; each click adds as many. */
export const membersShown = 25;
/** A graph opens with at most this many boxes. */
const maxBoxesAtFirst = 40;
/** With more boxes, a graph is not readable, and its layout takes seconds. */
const maxBoxes = 400;
const maxEdges = 400;
/** With more children, children of one kind are grouped, if there are enough of them. */
const maxUngrouped = 12;
const minGroup = 4;

/** Members of a box: things and groups of them. */
interface Member {
  readonly id: string;
  /** Null: a group. */
  readonly thing: number | null;
  readonly things: readonly number[];
}

/** Things with their components and kinds, expanded as chosen. */
export function viewTree(tree: GraphTree, choice: GraphChoice): GraphView {
  const expanded = new Set([...(choice.expanded ?? expandToFit(tree)), ...choice.added]);
  if (choice.focus !== null && choice.isRevealed) for (const id of pathTo(tree, choice.focus)) expanded.add(id);
  const boxes: GraphBox[] = [];
  /** By thing: the visible box that represents it. */
  const standIn = new Array<string | undefined>(tree.data.names.length);
  const edges = new Map<string, GraphEdge>();
  let omittedBoxes = 0;
  const add = (box: GraphBox): void => {
    if (boxes.length >= maxBoxes) omittedBoxes += 1;
    else boxes.push(box);
    if (box.parent !== null) edges.set(`${box.id}\n${box.parent}`, { from: box.id, to: box.parent, isParent: true });
  };
  const pending: { readonly of: string | null; readonly members: readonly Member[] }[] = [
    { of: null, members: membersOf(tree, -1) },
  ];
  for (let next = 0; next < pending.length; next++) {
    const { members, of } = pending[next] as (typeof pending)[number];
    const { hidden, shown } = pageOf(tree, members, choice, of ?? 'roots');
    for (const member of shown) {
      const inside = contentOf(tree, member);
      const isExpanded = inside === null ? null : expanded.has(member.id);
      add(boxOf(tree, member, of, isExpanded));
      if (member.thing !== null) standIn[member.thing] = member.id;
      if (inside !== null && isExpanded) pending.push({ of: member.id, members: inside });
      else if (member.thing === null) for (const thing of member.things) standIn[thing] = member.id;
    }
    if (hidden.length === 0) continue;
    const id = moreId(of ?? 'roots');
    const count = hidden.reduce((sum, { things }) => sum + things.length, 0);
    add(moreBox(id, count, of));
    for (const { things } of hidden) for (const thing of things) standIn[thing] = id;
  }
  for (const thing of tree.order) standIn[thing] ??= standIn[tree.parents[thing] as number];
  const counts = new Map<string, { edge: GraphEdge; count: number }>();
  for (const [thing, needs] of tree.data.needs.entries()) {
    const from = standIn[thing];
    for (const need of needs) {
      const to = standIn[need];
      if (from === undefined || to === undefined || from === to) continue;
      const key = `${from}\n${to}`;
      if (edges.has(key)) continue;
      const known = counts.get(key);
      if (known) known.count += 1;
      else counts.set(key, { edge: { from, to, isParent: false }, count: 1 });
    }
  }
  const drawn = new Set(boxes.map(({ id }) => id));
  const isDrawn = ({ from, to }: GraphEdge): boolean => drawn.has(from) && drawn.has(to);
  const dependencies = [...counts.values()].filter(({ edge }) => isDrawn(edge)).sort((a, b) => b.count - a.count);
  const kept = dependencies.slice(0, maxEdges).map(({ edge }) => edge);
  return {
    boxes,
    edges: [...[...edges.values()].filter(isDrawn), ...kept],
    omittedBoxes,
    omittedEdges: dependencies.length - kept.length,
  };
}

export function viewNeighborhood(tree: GraphTree, choice: GraphChoice, focus: number): GraphView {
  const boxes = new Map<string, GraphBox>();
  const edges = new Map<string, GraphEdge>();
  const addThing = (thing: number, parent: string | null): string => {
    const member = memberOf(thing);
    if (!boxes.has(member.id)) boxes.set(member.id, boxOf(tree, member, parent, null));
    return member.id;
  };
  const connect = (from: string, to: string, isParent: boolean): void => {
    const key = `${from}\n${to}`;
    if (!edges.has(key)) edges.set(key, { from, to, isParent });
  };
  const id = addThing(focus, null);
  const parent = tree.parents[focus] as number;
  if (parent >= 0) connect(id, addThing(parent, null), true);
  const sides = [
    { name: 'children', things: tree.children[focus] ?? [], isBefore: false, isParent: true },
    { name: 'needs', things: tree.data.needs[focus] ?? [], isBefore: true, isParent: false },
    { name: 'needed', things: tree.neededBy[focus] ?? [], isBefore: false, isParent: false },
  ];
  for (const { isBefore, isParent, name, things } of sides) {
    const join = (other: string): void => (isBefore ? connect(id, other, isParent) : connect(other, id, isParent));
    const count = 12 + (choice.more[`${id} ${name}`] ?? 0);
    for (const thing of things.slice(0, count)) if (thing !== focus) join(addThing(thing, isParent ? id : null));
    if (things.length <= count) continue;
    const more = moreBox(moreId(`${id} ${name}`), things.length - count, id);
    boxes.set(more.id, more);
    join(more.id);
  }
  return { boxes: [...boxes.values()], edges: [...edges.values()], omittedBoxes: 0, omittedEdges: 0 };
}

/** The box with the id is the rest of this list. */
export function listOfMore(id: string): string {
  return id.slice(2);
}

function moreId(list: string): string {
  return `m ${list}`;
}

function moreBox(id: string, count: number, parent: string | null): GraphBox {
  const name = graphBoxTexts.more(count);
  return { id, shape: 'more', thing: null, name, detail: '', parent, isExpanded: null, isFaint: false };
}

function memberOf(thing: number): Member {
  return { id: `t${thing}`, thing, things: [thing] };
}

/** The roots, without a thing. Long lists are by kind. */
function membersOf(tree: GraphTree, parent: number): Member[] {
  const things = parent < 0 ? tree.roots : (tree.children[parent] ?? []);
  if (things.length <= maxUngrouped) return things.map(memberOf);
  return [...Map.groupBy(things, (thing) => tree.data.kindOf[thing] as number)].flatMap(([kind, of]) =>
    of.length < minGroup ? of.map(memberOf) : [{ id: `g${parent} ${kind}`, thing: null, things: of }],
  );
}

/** Null: the member contains nothing. */
function contentOf(tree: GraphTree, { thing, things }: Member): Member[] | null {
  if (thing === null) return things.map(memberOf);
  return (tree.children[thing]?.length ?? 0) === 0 ? null : membersOf(tree, thing);
}

/** The first ones, and the one that contains the focus. */
function pageOf(tree: GraphTree, members: readonly Member[], { focus, more }: GraphChoice, list: string) {
  const count = membersShown + (more[list] ?? 0);
  // A box for the rest would take the place of a single member.
  if (members.length <= count + 1) return { shown: members, hidden: [] };
  const path = new Set(focus === null ? [] : pathTo(tree, focus, true));
  const isShown = ({ id }: Member, at: number): boolean => at < count || path.has(id);
  return {
    shown: members.filter(isShown),
    hidden: members.filter((member, at) => !isShown(member, at)),
  };
}

function boxOf(
  tree: GraphTree,
  { id, thing, things }: Member,
  parent: string | null,
  isExpanded: boolean | null,
): GraphBox {
  const kind = tree.data.kinds[tree.data.kindOf[things[0] as number] as number] ?? '';
  const below = things.reduce((sum, at) => sum + (tree.below[at] as number), 0);
  const inside = below === 0 ? '' : graphBoxTexts.inside(below);
  if (thing === null) {
    const detail = [graphBoxTexts.resources(things.length), inside].filter(Boolean).join(', ');
    return { id, shape: 'group', thing, name: kind, detail, parent, isExpanded, isFaint: false };
  }
  return {
    ...{
      id,
      shape: tree.data.holders?.[thing] ? ('group' as const) : ('thing' as const),
      thing,
      name: tree.data.names[thing] ?? '',
      parent,
      isExpanded,
    },
    detail: [kind, inside].filter(Boolean).join(', '),
    isFaint: tree.data.faint?.[thing] ?? false,
  };
}

/** The boxes that must be expanded to show a thing. `isWithItself`: including its own box. */
function pathTo(tree: GraphTree, focus: number, isWithItself = false): string[] {
  const ids = isWithItself ? [`t${focus}`] : [];
  for (let thing = focus; ; ) {
    const parent = tree.parents[thing] as number;
    const group = membersOf(tree, parent).find((member) => member.thing === null && member.things.includes(thing));
    if (group) ids.push(group.id);
    if (parent < 0) return ids;
    ids.push(`t${parent}`);
    thing = parent;
  }
}

/** Level by level, as long as all boxes fit. Groups remain collapsed. */
function expandToFit(tree: GraphTree): string[] {
  const expanded: string[] = [];
  let level = membersOf(tree, -1);
  let count = Math.min(level.length, membersShown + 1);
  while (level.length <= membersShown) {
    const inside = level.flatMap((member) => {
      const members = member.thing === null ? null : contentOf(tree, member);
      return members === null ? [] : [{ id: member.id, members }];
    });
    const added = inside.reduce((sum, { members }) => sum + Math.min(members.length, membersShown + 1), 0);
    if (inside.length === 0 || count + added > maxBoxesAtFirst) break;
    count += added;
    expanded.push(...inside.map(({ id }) => id));
    level = inside.flatMap(({ members }) => members);
  }
  return expanded;
}
