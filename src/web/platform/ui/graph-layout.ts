import { Graph, layout } from '@dagrejs/dagre';

/** A larger graph is not readable, and its layout would block the page. */
export const maxGraphNodes = 500;
/** The approximate space for a graph on a page, in pixels. */
const space = { width: 980, height: 520 };
/** Text is not readable at a smaller scale. Layers that would make the graph that high are split into several columns. */
const readableScale = 0.5;
const gap = { rows: 16, columns: 24, layers: 64 };

export interface GraphNode {
  id: string;
}

/** `from` needs `to`: it depends on it, or is its child. */
export interface GraphEdge {
  from: string;
  to: string;
}

/** Upper left corner of a node, in pixels. */
export interface NodePosition {
  id: string;
  x: number;
  y: number;
}

export interface GraphLayout {
  nodes: NodePosition[];
  /** Edges whose both ends are shown, each once. */
  edges: GraphEdge[];
  /** Nodes that were left out. */
  omittedCount: number;
  width: number;
  height: number;
}

/** Places nodes in layers, with dependencies left of their dependents. Keeps the first `maxGraphNodes`. */
export function layOutGraph(
  nodes: readonly GraphNode[],
  edges: readonly GraphEdge[],
  size: { width: number; height: number },
): GraphLayout {
  const shown = [...new Set(nodes.map(({ id }) => id))].slice(0, maxGraphNodes);
  const known = new Set(shown);
  const kept = new Map<string, GraphEdge>();
  for (const { from, to } of edges) {
    if (from !== to && known.has(from) && known.has(to)) kept.set(`${from}\n${to}`, { from, to });
  }
  const graph = new Graph({ multigraph: false });
  graph.setGraph({ rankdir: 'LR', nodesep: gap.rows, ranksep: gap.layers });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const id of shown) graph.setNode(id, { ...size });
  for (const { from, to } of kept.values()) graph.setEdge(to, from);
  layout(graph);
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  const placed = shown.map((id): NodePosition => {
    const { x, y } = graph.node(id) as { x: number; y: number };
    return { id, x: x - size.width / 2, y: y - size.height / 2 };
  });
  return {
    ...(scaleOf({ width, height }) < readableScale ? foldLayers(placed, size) : { nodes: placed, width, height }),
    edges: [...kept.values()],
    omittedCount: new Set(nodes.map(({ id }) => id)).size - shown.length,
  };
}

type Placement = Pick<GraphLayout, 'nodes' | 'width' | 'height'>;

function scaleOf({ height, width }: { readonly width: number; readonly height: number }): number {
  return Math.min(1, space.width / width, space.height / height);
}

/** Splits high layers into columns, so that the graph is shown as large as possible. */
function foldLayers(placed: readonly NodePosition[], size: { width: number; height: number }): Placement {
  const layers = [...Map.groupBy(placed, ({ x }) => Math.round(x))]
    .sort(([one], [other]) => one - other)
    .map(([, layer]) => layer.sort((one, other) => one.y - other.y));
  const highest = Math.max(...layers.map(({ length }) => length));
  let best = fold(layers, highest, size);
  for (let rows = highest - 1; rows > 0; rows--) {
    const folded = fold(layers, rows, size);
    if (scaleOf(folded) > scaleOf(best)) best = folded;
  }
  return best;
}

/** Layers side by side, in columns of up to `maxRows` nodes, around a common middle. */
function fold(layers: readonly NodePosition[][], maxRows: number, size: { width: number; height: number }): Placement {
  const step = { x: size.width + gap.columns, y: size.height + gap.rows };
  const height = maxRows * step.y - gap.rows;
  let left = 0;
  const nodes = layers.flatMap((layer) => {
    const columns = Math.ceil(layer.length / maxRows);
    const rows = Math.ceil(layer.length / columns);
    const top = (height - (rows * step.y - gap.rows)) / 2;
    const start = left;
    left += columns * step.x - gap.columns + gap.layers;
    return layer.map(({ id }, at) => ({
      ...{ id, x: start + Math.floor(at / rows) * step.x, y: top + (at % rows) * step.y },
    }));
  });
  return { nodes, width: left - gap.layers, height };
}
