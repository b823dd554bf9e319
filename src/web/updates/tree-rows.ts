import type { ResourceRow, UpdateProgress } from './update-progress.ts';

export interface TreeRow {
  row: ResourceRow;
  depth: number;
  /** For each level above, whether a line continues to a later sibling. */
  guides: readonly boolean[];
  isLast: boolean;
  hasChildren: boolean;
  isCollapsed: boolean;
}

export interface TreeFilter {
  /** Also shows unchanged resources without messages. */
  showUnchanged: boolean;
  /** Shows resources whose URN contains the text, and their ancestors. */
  text: string;
  collapsed: ReadonlySet<string>;
}

/** The visible rows of the tree, from top to bottom. A resource is visible if it or one of its descendants matches. */
export function listTreeRows(progress: UpdateProgress, filter: TreeFilter): TreeRow[] {
  const visible = findVisible(progress, filter);
  const rows: TreeRow[] = [];
  interface Level {
    rows: readonly ResourceRow[];
    at: number;
    guides: readonly boolean[];
  }
  // Not recursive, because a damaged log may nest tens of thousands of resources.
  const stack: Level[] = [{ rows: [...progress.roots].filter((row) => visible.has(row)), at: 0, guides: [] }];
  while (stack.length > 0) {
    const level = stack.at(-1) as Level;
    const row = level.rows[level.at];
    if (row === undefined) {
      stack.pop();
      continue;
    }
    level.at += 1;
    const isLast = level.at === level.rows.length;
    const children = row.children.filter((child) => visible.has(child));
    const isCollapsed = filter.collapsed.has(row.urn) && children.length > 0;
    const depth = stack.length - 1;
    rows.push({ row, depth, guides: level.guides, isLast, hasChildren: children.length > 0, isCollapsed });
    // Deeper guide lines are not drawn.
    const guides = depth === 0 || depth > maxGuides ? level.guides : [...level.guides, !isLast];
    if (children.length > 0 && !isCollapsed) stack.push({ rows: children, at: 0, guides });
  }
  return rows;
}

const maxGuides = 24;

function findVisible(progress: UpdateProgress, { showUnchanged, text }: TreeFilter): Set<ResourceRow> {
  const visible = new Set<ResourceRow>();
  const wanted = text.trim().toLowerCase();
  for (const row of progress.rows.values()) {
    const matches = wanted === '' ? showUnchanged || isInteresting(row) : row.urn.toLowerCase().includes(wanted);
    if (!matches) continue;
    for (let at: ResourceRow | undefined = row; at !== undefined && !visible.has(at); ) {
      visible.add(at);
      at = at.parent === null ? undefined : progress.rows.get(at.parent);
    }
  }
  return visible;
}

export function isInteresting(row: ResourceRow): boolean {
  return row.op !== 'same' || row.status === 'failed' || row.worst !== null || isStack(row);
}

function isStack(row: ResourceRow): boolean {
  return row.type === 'pulumi:pulumi:Stack';
}
