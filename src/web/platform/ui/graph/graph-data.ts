/** Size of a box in pixels. */
export const boxSize = { width: 228, height: 54 };

/** Things of a graph by their positions in these lists, which have the same length. Lists: a worker gets a copy, of 50,000 things too. */
export interface GraphData {
  readonly names: readonly string[];
  /** Second lines. Things with the same parent and the same kind are grouped. */
  readonly kinds: readonly string[];
  /** By thing: its position in `kinds`. */
  readonly kindOf: readonly number[];
  /** By thing: the thing that it belongs to, or -1. */
  readonly parents: readonly number[];
  /** By thing: what it depends on. */
  readonly needs: readonly (readonly number[])[];
  /** By thing: whether it only holds others: a click expands it. */
  readonly holders?: readonly boolean[];
  /** By thing: whether it cannot be opened. */
  readonly faint?: readonly boolean[];
}

/** What is expanded, and how many members of a box are shown. */
export interface GraphChoice {
  /** Null: as much as fits. */
  readonly expanded: readonly string[] | null;
  /** Expanded besides. */
  readonly added: readonly string[];
  /** By box: members that are shown beyond the first ones. */
  readonly more: Readonly<Record<string, number>>;
  /** A thing that is chosen. */
  readonly focus: number | null;
  /** Expands the boxes that it is in. */
  readonly isRevealed: boolean;
  /** Only this thing and what it is connected with, or all. */
  readonly isNear: boolean;
}

/** A box of a graph: a thing, a group of things of one kind, or the rest of a long list. */
export interface GraphBox {
  readonly id: string;
  readonly shape: 'thing' | 'group' | 'more';
  /** Of a thing. */
  readonly thing: number | null;
  readonly name: string;
  readonly detail: string;
  /** The box that it belongs to. */
  readonly parent: string | null;
  /** Null: there is nothing to expand. */
  readonly isExpanded: boolean | null;
  readonly isFaint: boolean;
}

/** `from` needs `to`: it depends on it, or belongs to it. */
export interface GraphEdge {
  readonly from: string;
  readonly to: string;
  readonly isParent: boolean;
}

/** What is drawn. */
export interface GraphView {
  readonly boxes: readonly GraphBox[];
  readonly edges: readonly GraphEdge[];
  /** Boxes and dependencies that were left out. */
  readonly omittedBoxes: number;
  readonly omittedEdges: number;
}
