import { type ReactFlowInstance, useReactFlow, useStore, type Viewport } from '@xyflow/react';
import { useEffect, useRef } from 'react';
import { boxSize } from './graph-data.ts';
import type { GraphLayout } from './graph-layout.ts';
import type { GraphDrawing } from './graph-worker.ts';

/** Smaller text is hard to read: 12 pixels become 11. */
export const readableZoom = 0.92;
const margin = 24;

/**
 * All of a new drawing if it fits, otherwise from its left edge or around the box `center`. A box that stays (`held`) keeps its position on
 * the screen, so that a click moves nothing away from the pointer.
 */
export function GraphCamera({
  center,
  drawing,
  held,
  subject,
}: {
  readonly drawing: GraphDrawing;
  readonly center: string | null;
  readonly held: string | null;
  /** Another subject is another picture. */
  readonly subject: string;
}) {
  const flow = useReactFlow();
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  const canvas = useStore((state) => state.domNode);
  const shown = useRef<{ drawing: GraphDrawing; subject: string; width: number } | null>(null);
  useEffect(() => {
    if (width === 0 || height === 0) return;
    const before = shown.current;
    if (before?.drawing === drawing && before.width === width) return;
    shown.current = { drawing, subject, width };
    const { layout } = drawing;
    const boxIn = (of: GraphDrawing, id: string | null) => of.layout.boxes.find((box) => box.id === id);
    const now = boxIn(drawing, held);
    const then = before && boxIn(before.drawing, held);
    if (before !== null && before.subject === subject && before.width === width && now && then) {
      const { x, y, zoom } = flow.getViewport();
      const moved = { zoom, x: x + (then.x - now.x) * zoom, y: y + (then.y - now.y) * zoom };
      // The outline can expand a box that is not in view.
      if (isInView(now, moved, { width, height })) void flow.setViewport(moved);
      else centerOn(flow, now);
      return;
    }
    const zoom = Math.min(1, Math.max(readableZoom, zoomToFit(layout, { width, height })));
    const box = boxIn(drawing, center);
    // If a picture does not fit, its first column is in view, unless `center` would be out of view.
    const isFar = box !== undefined && (box.x + boxSize.width) * zoom > width - 2 * margin;
    const start = (space: number, size: number, at: number): number =>
      size * zoom <= space - 2 * margin
        ? (space - size * zoom) / 2
        : Math.min(margin, Math.max(space - margin - size * zoom, space / 2 - at * zoom));
    void flow.setViewport({
      ...{ zoom, x: start(width, layout.width, isFar ? box.x + boxSize.width / 2 : 0) },
      y: start(height, layout.height, ((box ?? leftmost(drawing))?.y ?? 0) + boxSize.height / 2),
    });
  }, [center, drawing, flow, height, held, subject, width]);
  // Brings a box that the keyboard reaches into view. Browsers scroll to it, but the picture undoes that.
  useEffect(() => {
    const onFocus = ({ target }: FocusEvent): void => {
      // A clicked box must not move before the button is released.
      if (!(target as HTMLElement).matches(':focus-visible')) return;
      const id = (target as HTMLElement).closest<HTMLElement>('[data-box]')?.dataset['box'];
      const box = drawing.layout.boxes.find((each) => each.id === id);
      if (box && !isInView(box, flow.getViewport(), { width, height })) centerOn(flow, box);
    };
    canvas?.addEventListener('focusin', onFocus);
    return () => canvas?.removeEventListener('focusin', onFocus);
  }, [canvas, drawing, flow, height, width]);
  return null;
}

export function zoomToFit(layout: GraphLayout, { height, width }: { width: number; height: number }): number {
  return Math.min((width - 2 * margin) / layout.width, (height - 2 * margin) / layout.height);
}

function isInView(
  { x, y }: Position,
  viewport: Viewport,
  { height, width }: { width: number; height: number },
): boolean {
  const left = viewport.x + x * viewport.zoom;
  const top = viewport.y + y * viewport.zoom;
  const right = left + boxSize.width * viewport.zoom;
  return left >= 0 && top >= 0 && right <= width && top + boxSize.height * viewport.zoom <= height;
}

function centerOn(flow: Pick<ReactFlowInstance, 'setCenter' | 'getViewport'>, { x, y }: Position): void {
  const { zoom } = flow.getViewport();
  void flow.setCenter(x + boxSize.width / 2, y + boxSize.height / 2, { zoom: Math.max(zoom, readableZoom) });
}

interface Position {
  readonly x: number;
  readonly y: number;
}

function leftmost({ layout: { boxes } }: GraphDrawing) {
  return boxes.reduce<(typeof boxes)[number] | undefined>(
    (best, box) => (best === undefined || box.x < best.x ? box : best),
    undefined,
  );
}
