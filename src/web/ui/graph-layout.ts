import { Graph, layout } from '@dagrejs/dagre';

/** More than these cannot be read, and laying them out would stop the page. */
export const maxGraphNodes = 500;

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

/** Places nodes in layers, so that what is needed is left of what needs it. Keeps the first `maxGraphNodes`. */
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
  graph.setGraph({ rankdir: 'LR', nodesep: 16, ranksep: 64, marginx: 16, marginy: 16 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const id of shown) graph.setNode(id, { ...size });
  for (const { from, to } of kept.values()) graph.setEdge(to, from);
  layout(graph);
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  return {
    nodes: shown.map((id) => {
      const { x, y } = graph.node(id) as { x: number; y: number };
      return { id, x: x - size.width / 2, y: y - size.height / 2 };
    }),
    edges: [...kept.values()],
    omittedCount: new Set(nodes.map(({ id }) => id)).size - shown.length,
    width,
    height,
  };
}
