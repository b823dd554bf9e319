import type { GraphBox, GraphChoice, GraphData } from './graph-data.ts';

/** From former data to newer data. Null: the element is gone. */
export interface GraphMoves {
  /** Maps the id of a box, or of a list of boxes. */
  readonly id: (id: string) => string | null;
  readonly box: (box: GraphBox) => GraphBox | null;
  /** Elements that are gone are left out. */
  readonly choice: (choice: GraphChoice) => GraphChoice;
}

/** Things are positions in lists, which change when another thing is added or removed. */
export function movesBetween(former: GraphData, latest: GraphData): GraphMoves {
  const before = keysOf(former);
  const after = new Map(keysOf(latest).map((key, at) => [key, at]));
  const thing = (at: number): number | null => after.get(before[at] ?? '') ?? null;
  /** Ids contain positions of things and kinds: `t7`, `g7 2`, `m t7`, `t7 needs`; other ids contain none. */
  const id = (from: string): string | null => {
    let isGone = false;
    const moved = (at: string): number => {
      const found = at === '-1' ? -1 : thing(Number(at));
      isGone ||= found === null;
      return found ?? 0;
    };
    const to = from
      .replace(/\bt(\d+)/, (_, at: string) => `t${moved(at)}`)
      .replace(/\bg(-?\d+) (\d+)/, (_, parent: string, kind: string) => {
        const found = latest.kinds.indexOf(former.kinds[Number(kind)] ?? '');
        isGone ||= found < 0;
        return `g${moved(parent)} ${found}`;
      });
    return isGone ? null : to;
  };
  const ids = (list: readonly string[]): string[] => list.flatMap((each) => id(each) ?? []);
  return {
    id,
    box: (box) => {
      const to = id(box.id);
      const parent = box.parent === null ? null : id(box.parent);
      return to === null ? null : { ...box, id: to, parent, thing: box.thing === null ? null : thing(box.thing) };
    },
    choice: (choice) => ({
      ...choice,
      expanded: choice.expanded === null ? null : ids(choice.expanded),
      added: ids(choice.added),
      more: Object.fromEntries(
        Object.entries(choice.more).flatMap(([list, count]) => {
          const to = id(list);
          return to === null ? [] : [[to, count]];
        }),
      ),
      focus: choice.focus === null ? null : thing(choice.focus),
    }),
  };
}

/** Stable: a thing's kind, its name, and those of its parents; the first of equal ones counts. */
function keysOf({ kindOf, kinds, names, parents }: GraphData): string[] {
  const own = names.map((name, at) => `${kinds[kindOf[at] as number]}\n${name}`);
  const counts = new Map<string, number>();
  return own.map((key, at) => {
    const parent = parents[at] ?? -1;
    const full = parent < 0 ? key : `${key}\n${own[parent]}`;
    const count = counts.get(full) ?? 0;
    counts.set(full, count + 1);
    return count === 0 ? full : `${full}\n${count}`;
  });
}
