import { BaseEdge, Controls, type Edge, type EdgeProps, MarkerType, MiniMap, ReactFlow, useStore } from '@xyflow/react';
import '@xyflow/react/dist/style.css';
import { type ReactNode, useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { Button } from '../button.tsx';
import { Segments } from '../segments.tsx';
import { Skeleton } from '../skeleton.tsx';
import styles from './flow-graph.module.css';
import { type BoxActions, BoxActionsContext, type BoxNode, BoxOfGraph } from './graph-box.tsx';
import { GraphCamera, readableZoom, zoomToFit } from './graph-camera.tsx';
import { showMore, toggleBox } from './graph-choice.ts';
import { boxSize, type GraphBox, type GraphChoice, type GraphData } from './graph-data.ts';
import type { GraphLayout } from './graph-layout.ts';
import { type GraphMoves, movesBetween } from './graph-moves.ts';
import { GraphOutline } from './graph-outline.tsx';
import { GraphSearch } from './graph-search.tsx';
import type { GraphDrawing } from './graph-worker.ts';
import { graphTexts } from './texts.ts';
import { type Drawn, useDrawing } from './use-drawing.ts';

type RoutedEdge = Edge<{ readonly path: string } & Record<string, unknown>, 'routed'>;

const nodeTypes = { box: BoxOfGraph };
const edgeTypes = { routed: RoutedLine };
/** Beyond this number, boxes are drawn only in view. */
const maxAlwaysDrawn = 100;
/** Fewer boxes need no map. */
const minForMap = 15;
/** A hand is never still: a press that moves less counts as a click. */
const clickPx = 6;
const mapSize = { width: 160, height: 110 };
const nearOrAll = [
  { value: 'near', label: graphTexts.neighborhood },
  { value: 'all', label: graphTexts.all },
] as const;

interface FlowGraphProps {
  readonly label: string;
  readonly caption: ReactNode;
  /** Undefined while it is loading. */
  readonly data: GraphData | undefined;
  readonly chosen: number | null;
  readonly onOpen: (thing: number) => void;
  /** The action of the search on a thing; without it, the graph shows the thing's neighborhood. */
  readonly onPick?: (thing: number) => void;
}

/** Collapsed by parent and by kind, with search, a map, and an outline in words. */
export function FlowGraph({ caption, chosen, data, label, onOpen, onPick }: FlowGraphProps) {
  const [picked, setPicked] = useState<number | null>(null);
  const focus = chosen ?? picked;
  const [choice, setChoice] = useState<GraphChoice>({
    ...{ expanded: null, added: [], more: {}, focus, isRevealed: true, isNear: focus !== null },
  });
  const [held, setHeld] = useState<string | null>(null);
  const [basis, setBasis] = useState(data);
  if (data !== undefined && data !== basis) {
    setBasis(data);
    if (basis !== undefined) {
      const moves = movesBetween(basis, data);
      const moved = moves.choice({ ...choice, focus: picked });
      setHeld(held === null ? null : moves.id(held));
      setPicked(moved.focus);
      setChoice({ ...moved, focus: chosen ?? moved.focus, isNear: choice.isNear && (chosen ?? moved.focus) !== null });
    }
  }
  // Another thing needs another picture.
  else if (choice.focus !== focus) setChoice({ ...choice, focus, isRevealed: true, isNear: focus !== null });
  const figure = useRef<HTMLElement>(null);
  const { drawn, hasFailed, retry } = useDrawing(data, choice, figure);
  const drawing = drawn?.drawing ?? null;
  // The picture may still show former data: a clicked box is then looked up in the new data.
  const moves =
    drawn === null || data === undefined || drawn.data === data ? null : () => movesBetween(drawn.data, data);
  const current = (): Drawn | null => (moves === null || drawn === null ? drawn : movedDrawing(drawn, moves()));
  const inData =
    (act: (box: GraphBox) => void) =>
    (box: GraphBox): void => {
      const found = moves === null ? box : moves().box(box);
      if (found !== null) act(found);
    };
  const toggle = (box: GraphBox): void => {
    setHeld(box.id);
    setChoice(toggleBox(choice, current(), box));
  };
  const activate = (box: GraphBox): void => {
    setHeld(box.id);
    if (box.shape === 'thing') onOpen(box.thing ?? 0);
    else if (box.shape === 'group') toggle(box);
    else {
      setHeld(box.parent);
      setChoice(showMore(choice, current(), box));
    }
  };
  const shownFocus = moves === null ? focus : (drawn?.choice.focus ?? null);
  useKeptFocus(figure, drawing, shownFocus);
  const actions: BoxActions = { chosen: shownFocus, activate: inData(activate), toggle: inData(toggle) };
  const isNear = choice.isNear && focus !== null;
  return (
    <BoxActionsContext value={actions}>
      <figure ref={figure} className={styles['graph']} aria-label={label} aria-busy={drawing === null && !hasFailed}>
        <div className={styles['bar']}>
          <GraphSearch data={data} label={graphTexts.searchIn(label)} onPick={onPick ?? setPicked} />
          {focus === null ? null : (
            <Segments
              label={graphTexts.whatIsShown}
              options={nearOrAll}
              value={isNear ? 'near' : 'all'}
              onChange={(value) => setChoice({ ...choice, isNear: value === 'near', isRevealed: true })}
            />
          )}
          {chosen === null && picked !== null ? (
            <Button size="small" kind="quiet" onClick={() => setPicked(null)}>
              {graphTexts.clear}
            </Button>
          ) : null}
        </div>
        {hasFailed ? (
          <p className={styles['failed']} role="alert">
            {graphTexts.cannotBeDrawn} <Button onClick={retry}>{graphTexts.tryAgain}</Button>
          </p>
        ) : drawing === null ? (
          <div className={styles['canvas']}>
            <Skeleton width="40%" />
          </div>
        ) : (
          <Picture
            drawing={drawing}
            center={shownFocus === null ? null : `t${shownFocus}`}
            held={held}
            subject={`${focus === null ? '' : data?.names[focus]} ${isNear}`}
          />
        )}
        <figcaption className={styles['caption']}>
          {caption}
          {drawing !== null && drawing.view.omittedBoxes > 0 ? graphTexts.boxesLeftOut(drawing.view.omittedBoxes) : ''}
          {drawing !== null && drawing.view.omittedEdges > 0 ? graphTexts.linesLeftOut(drawing.view.omittedEdges) : ''}
        </figcaption>
        {drawing === null ? null : (
          <details className={styles['outline']}>
            <summary>{graphTexts.outline}</summary>
            <GraphOutline view={drawing.view} />
          </details>
        )}
      </figure>
    </BoxActionsContext>
  );
}

/** A picture of former data, with the ids of newer data. */
function movedDrawing(drawn: Drawn, moves: GraphMoves): Drawn {
  const boxes = drawn.drawing.view.boxes.flatMap((box) => moves.box(box) ?? []);
  const drawing = { ...drawn.drawing, view: { ...drawn.drawing.view, boxes } };
  return { ...drawn, drawing, choice: moves.choice(drawn.choice) };
}

/** If the focused box is gone, the chosen box gets the focus, otherwise the first one. */
function useKeptFocus(
  figure: { readonly current: HTMLElement | null },
  drawing: GraphDrawing | null,
  focus: number | null,
): void {
  const hadFocus = useRef(false);
  useEffect(() => {
    const note = (): void => {
      hadFocus.current = document.activeElement?.closest('[data-box]') != null;
    };
    document.addEventListener('focusin', note);
    return () => document.removeEventListener('focusin', note);
  }, []);
  useEffect(() => {
    if (drawing === null || !hadFocus.current || document.activeElement !== document.body) return;
    const boxes = figure.current?.querySelectorAll<HTMLElement>('[data-box]') ?? [];
    const next = [...boxes].find((box) => box.dataset['box'] === `t${focus}`) ?? boxes[0];
    next?.querySelector('button')?.focus({ preventScroll: true });
  }, [drawing, figure, focus]);
}

interface PictureProps {
  readonly drawing: GraphDrawing;
  readonly center: string | null;
  readonly held: string | null;
  readonly subject: string;
}

function Picture({ center, drawing, held, subject }: PictureProps) {
  const [pointed, setPointed] = useState<string | null>(null);
  const nodes = useMemo(() => {
    const boxes = new Map(drawing.layout.boxes.map((box) => [box.id, box]));
    return drawing.view.boxes.map((box): BoxNode => {
      const { x = 0, y = 0 } = boxes.get(box.id) ?? {};
      return { id: box.id, type: 'box', position: { x, y }, ...boxSize, data: { box } };
    });
  }, [drawing]);
  const edges = useMemo(
    () =>
      drawing.layout.edges.map(({ from, isParent, path, to }): RoutedEdge => {
        const isPointed = pointed === from || pointed === to;
        const look = [isParent && styles['dotted'], isPointed && styles['pointed']];
        return {
          ...{ id: `${from} ${to}`, type: 'routed', source: to, target: from, data: { path } },
          ...{ className: look.filter(Boolean).join(' '), zIndex: isPointed ? 1 : 0 },
          ...(isParent ? {} : { markerStart: { type: MarkerType.ArrowClosed, width: 16, height: 16 } }),
        };
      }),
    [drawing, pointed],
  );
  const point = useCallback((target: EventTarget | null): void => {
    setPointed((target as HTMLElement | null)?.closest<HTMLElement>('[data-box]')?.dataset['box'] ?? null);
  }, []);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it only marks the lines of the box under the pointer or with the focus.
    <div
      className={styles['canvas']}
      onFocus={({ target }) => point(target)}
      onBlur={() => setPointed(null)}
      onPointerOver={({ target }) => point(target)}
    >
      <ReactFlow
        nodes={nodes}
        edges={edges}
        nodeTypes={nodeTypes}
        edgeTypes={edgeTypes}
        minZoom={0.1}
        maxZoom={2}
        paneClickDistance={clickPx}
        nodesDraggable={false}
        nodesConnectable={false}
        nodesFocusable={false}
        edgesFocusable={false}
        elementsSelectable={false}
        onlyRenderVisibleElements={nodes.length > maxAlwaysDrawn}
      >
        <GraphCamera drawing={drawing} center={center} held={held} subject={subject} />
        <Controls showInteractive={false} />
        {nodes.length >= minForMap ? <MapOfGraph layout={drawing.layout} /> : null}
      </ReactFlow>
    </div>
  );
}

/** A picture that is entirely in view needs no map, which would cover boxes. */
function MapOfGraph({ layout }: { readonly layout: GraphLayout }) {
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  if (width === 0 || zoomToFit(layout, { width, height }) >= readableZoom) return null;
  return <MiniMap style={mapSize} pannable zoomable maskStrokeWidth={2} ariaLabel={graphTexts.map} />;
}

function RoutedLine({ data, id, markerStart }: EdgeProps<RoutedEdge>) {
  return <BaseEdge id={id} path={data?.path ?? ''} {...(markerStart === undefined ? {} : { markerStart })} />;
}
