import { Graph, layout } from '@dagrejs/dagre';
import type { GraphEdge } from './graph-data.ts';

/** A higher layer is split into columns. */
const maxRows = 10;
/** Number of columns of boxes without edges, below the others. */
const looseColumns = 4;
const gap = { rows: 16, layers: 72 };

interface Point {
  readonly x: number;
  readonly y: number;
}

/** Upper left corner of a box, in pixels. */
export interface PositionedBox extends Point {
  readonly id: string;
}

/** No box but the edge's ends is in the way of the path. */
export interface EdgeRoute extends GraphEdge {
  readonly path: string;
  /** From the box that is needed to the box that needs it. */
  readonly points: readonly Point[];
}

export interface GraphLayout {
  readonly boxes: readonly PositionedBox[];
  readonly edges: readonly EdgeRoute[];
  readonly width: number;
  readonly height: number;
}

interface Size {
  readonly width: number;
  readonly height: number;
}

/** Dependencies are left of their dependents, and edges run between the boxes. */
export function layOutGraph(ids: readonly string[], edges: readonly GraphEdge[], size: Size): GraphLayout {
  const joined = new Set(edges.flatMap(({ from, to }) => [from, to]));
  const tied = ids.filter((id) => joined.has(id));
  const loose = ids.filter((id) => !joined.has(id));
  const tiedLayout = tied.length === 0 ? empty : layOutTied(tied, edges, size);
  const top = tiedLayout.height === 0 ? 0 : tiedLayout.height + gap.rows * 2;
  const columns = Math.min(loose.length, looseColumns);
  const boxes = loose.map((id, at) => ({
    ...{ id, x: (at % columns) * (size.width + gap.rows) },
    y: top + Math.floor(at / columns) * (size.height + gap.rows),
  }));
  const all = [...tiedLayout.boxes, ...boxes];
  return {
    boxes: all,
    edges: tiedLayout.edges,
    width: Math.max(0, ...all.map(({ x }) => x + size.width)),
    height: Math.max(tiedLayout.height, ...all.map(({ y }) => y + size.height)),
  };
}

const empty: GraphLayout = { boxes: [], edges: [], width: 0, height: 0 };

function layOutTied(ids: readonly string[], edges: readonly GraphEdge[], size: Size): GraphLayout {
  const columns = splitLayers(arrangeLayers(ids, edges, size), ids);
  const { graph, junctions } = arrangeColumns(ids, edges, columns, size);
  const { height = 0, width = 0 } = graph.graph() as Partial<Size>;
  return {
    boxes: ids.map((id) => {
      const { x, y } = graph.node(id);
      return { id, x: x - size.width / 2, y: y - size.height / 2 };
    }),
    edges: edges.map((edge) => route(graph, edge, junctions.get(edge) ?? [], size)),
    ...{ width, height },
  };
}

/** Columns of boxes by their position in a first layout: a layer that is too high becomes several columns. */
function splitLayers(graph: Graph, ids: readonly string[]): Map<string, number> {
  const layers = [...Map.groupBy(ids, (id) => graph.node(id).x)].sort(([one], [other]) => one - other);
  const columns = new Map<string, number>();
  let column = 0;
  for (const [, layer] of layers) {
    const parts = Math.ceil(layer.length / maxRows);
    const rows = Math.ceil(layer.length / parts);
    layer.sort((one, other) => graph.node(one).y - graph.node(other).y);
    for (const [at, id] of layer.entries()) columns.set(id, column + Math.floor(at / rows));
    column += parts;
  }
  return columns;
}

function newGraph(ids: readonly string[], size: Size): Graph {
  const graph = new Graph({ multigraph: false });
  graph.setGraph({ rankdir: 'LR', nodesep: gap.rows, edgesep: gap.rows, ranksep: gap.layers });
  for (const id of ids) graph.setNode(id, { ...size });
  return graph;
}

function arrangeLayers(ids: readonly string[], edges: readonly GraphEdge[], size: Size): Graph {
  const graph = newGraph(ids, size);
  for (const { from, to } of edges) graph.setEdge(to, from, {});
  layout(graph);
  return graph;
}

/**
 * An edge goes through a junction in each column that it crosses. Edges from one box share their junctions: with separate lines, a graph
 * with many readers of one thing would be as high as without columns.
 */
function arrangeColumns(
  ids: readonly string[],
  edges: readonly GraphEdge[],
  columns: ReadonlyMap<string, number>,
  size: Size,
) {
  const graph = newGraph(ids, size);
  const junctions = new Map<GraphEdge, string[]>();
  for (const edge of edges) {
    const end = columns.get(edge.from) as number;
    const start = columns.get(edge.to) as number;
    // The edges of a cycle lead back, and must not reverse the columns.
    const step = Math.sign(end - start);
    const passed: string[] = [];
    for (let column = start + step; column !== end && step !== 0; column += step) {
      const id = `${edge.to}\n${step}\n${column}`;
      if (!graph.hasNode(id)) graph.setNode(id, { width: size.width, height: 1 });
      passed.push(id);
    }
    const stops = [edge.to, ...passed, edge.from];
    for (const [at, stop] of stops.entries()) {
      const next = stops[at + 1];
      if (next === undefined) break;
      if (step < 0) graph.setEdge(next, stop, {});
      else graph.setEdge(stop, next, {});
    }
    junctions.set(edge, passed);
  }
  layout(graph);
  return { graph, junctions };
}

/** Horizontal through columns, between their boxes; bends only between columns. */
function route(graph: Graph, edge: GraphEdge, junctions: readonly string[], size: Size): EdgeRoute {
  const start = graph.node(edge.to) as Point;
  const end = graph.node(edge.from) as Point;
  const half = (size.width / 2) * (Math.sign(end.x - start.x) || 1);
  const points = [
    { x: start.x + half, y: start.y },
    ...junctions.flatMap((id) => {
      const { x, y } = graph.node(id) as Point;
      return [
        { x: x - half, y },
        { x: x + half, y },
      ];
    }),
    { x: end.x - half, y: end.y },
  ].map(({ x, y }) => ({ x: Math.round(x), y: Math.round(y) }));
  return { ...edge, points, path: pathOf(points) };
}

/** Bends between the first and second point, is horizontal between the second and third, and so on. */
function pathOf(points: readonly Point[]): string {
  const [first, ...others] = points as [Point, ...Point[]];
  let path = `M${first.x} ${first.y}`;
  for (const [at, { x, y }] of others.entries()) {
    const before = points[at] as Point;
    const middle = (before.x + x) / 2;
    path += at % 2 === 0 ? `C${middle} ${before.y} ${middle} ${y} ${x} ${y}` : `L${x} ${y}`;
  }
  return path;
}
