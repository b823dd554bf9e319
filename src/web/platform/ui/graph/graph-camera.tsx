import { useReactFlow, useStore } from '@xyflow/react';
import { useEffect, useRef } from 'react';
import { boxSize } from './graph-data.ts';
import type { GraphDrawing } from './graph-worker.ts';

/** Smaller text is hard to read: 12 pixels become 11. */
export const readableZoom = 0.92;
const margin = 24;

/**
 * Shows a new drawing readably: all of it if it fits, or else from its left edge or around `centre`, a box. A box that stays in place
 * (`held`) keeps its place on the screen, so that a click moves nothing from under the pointer.
 */
export function GraphCamera({
  centre,
  drawing,
  held,
  subject,
}: {
  readonly drawing: GraphDrawing;
  readonly centre: string | null;
  readonly held: string | null;
  /** Another subject is another picture. */
  readonly subject: string;
}) {
  const flow = useReactFlow();
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  const shown = useRef<{ drawing: GraphDrawing; subject: string; width: number } | null>(null);
  useEffect(() => {
    if (width === 0 || height === 0) return;
    const before = shown.current;
    if (before?.drawing === drawing && before.width === width) return;
    shown.current = { drawing, subject, width };
    const { layout } = drawing;
    const placeIn = (of: GraphDrawing, id: string | null) => of.layout.boxes.find((box) => box.id === id);
    const now = placeIn(drawing, held);
    const then = before && placeIn(before.drawing, held);
    if (before !== null && before.subject === subject && before.width === width && now && then) {
      const { x, y, zoom } = flow.getViewport();
      void flow.setViewport({ zoom, x: x + (then.x - now.x) * zoom, y: y + (then.y - now.y) * zoom });
      return;
    }
    const fit = Math.min((width - 2 * margin) / layout.width, (height - 2 * margin) / layout.height);
    const zoom = Math.min(1, Math.max(readableZoom, fit));
    const box = placeIn(drawing, centre);
    // The first column of a picture that does not fit is in view, unless `centre` would be out of it.
    const isFar = box !== undefined && (box.x + boxSize.width) * zoom > width - 2 * margin;
    const start = (space: number, size: number, at: number): number =>
      size * zoom <= space - 2 * margin
        ? (space - size * zoom) / 2
        : Math.min(margin, Math.max(space - margin - size * zoom, space / 2 - at * zoom));
    void flow.setViewport({
      ...{ zoom, x: start(width, layout.width, isFar ? box.x + boxSize.width / 2 : 0) },
      y: start(height, layout.height, ((box ?? leftmost(drawing))?.y ?? 0) + boxSize.height / 2),
    });
  }, [centre, drawing, flow, height, held, subject, width]);
  return null;
}

function leftmost({ layout: { boxes } }: GraphDrawing) {
  return boxes.reduce<(typeof boxes)[number] | undefined>(
    (best, box) => (best === undefined || box.x < best.x ? box : best),
    undefined,
  );
}
