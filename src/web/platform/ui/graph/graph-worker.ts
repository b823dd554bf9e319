import { boxSize, type GraphChoice, type GraphData, type GraphView } from './graph-data.ts';
import { type GraphLayout, layOutGraph } from './graph-layout.ts';
import { type GraphTree, growTree } from './graph-tree.ts';
import { viewNeighborhood, viewTree } from './graph-view.ts';

/** `data` is sent with the first request about it. */
export interface GraphQuestion {
  readonly number: number;
  readonly data: GraphData | null;
  readonly choice: GraphChoice;
}

export interface GraphDrawing {
  readonly number: number;
  readonly view: GraphView;
  readonly layout: GraphLayout;
}

let tree: GraphTree | null = null;

// The page waits only for the newest answer.
addEventListener('message', ({ data: question }: MessageEvent<GraphQuestion>) => {
  const { choice, data, number } = question;
  if (data !== null) tree = growTree(data);
  if (tree === null) return;
  const view =
    choice.isNear && choice.focus !== null ? viewNeighborhood(tree, choice, choice.focus) : viewTree(tree, choice);
  const layout = layOutGraph(
    view.boxes.map(({ id }) => id),
    view.edges,
    boxSize,
  );
  postMessage({ number, view, layout } satisfies GraphDrawing);
});
