/** Size of a box in pixels. */
export const boxSize = { width: 228, height: 54 };

/** By their positions in these lists, which have the same length. Lists, because a worker gets a copy, even of 50,000 things. */
export interface GraphData {
  readonly names: readonly string[];
  /** Second lines. Things with the same parent and kind are grouped. */
  readonly kinds: readonly string[];
  /** By thing: its position in `kinds`. */
  readonly kindOf: readonly number[];
  /** By thing: its parent, or -1. */
  readonly parents: readonly number[];
  /** By thing: its dependencies. */
  readonly needs: readonly (readonly number[])[];
  /** By thing: it only contains others, and a click expands it. */
  readonly holders?: readonly boolean[];
  /** By thing: whether it cannot be opened. */
  readonly faint?: readonly boolean[];
}

export interface GraphChoice {
  /** Null: as many as fit. */
  readonly expanded: readonly string[] | null;
  /** Boxes that are expanded in addition. */
  readonly added: readonly string[];
  /** By box: members shown beyond the first ones. */
  readonly more: Readonly<Record<string, number>>;
  readonly focus: number | null;
  /** The boxes that contain the chosen thing are expanded. */
  readonly isRevealed: boolean;
  /** Only the chosen thing and its connections are shown. */
  readonly isNear: boolean;
}

/** A thing, a group of things of one kind, or the rest of a long list. */
export interface GraphBox {
  readonly id: string;
  readonly shape: 'thing' | 'group' | 'more';
  /** The thing; null for other boxes. */
  readonly thing: number | null;
  readonly name: string;
  readonly detail: string;
  readonly parent: string | null;
  /** Null: the box cannot be expanded. */
  readonly isExpanded: boolean | null;
  readonly isFaint: boolean;
}

/** `from` depends on `to`, or belongs to it. */
export interface GraphEdge {
  readonly from: string;
  readonly to: string;
  readonly isParent: boolean;
}

export interface GraphView {
  readonly boxes: readonly GraphBox[];
  readonly edges: readonly GraphEdge[];
  /** Numbers of omitted boxes and dependencies. */
  readonly omittedBoxes: number;
  readonly omittedEdges: number;
}
