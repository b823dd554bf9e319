import { type RefObject, useCallback, useEffect, useRef, useState } from 'react';
import type { GraphChoice, GraphData } from './graph-data.ts';
import type { GraphDrawing, GraphQuestion } from './graph-worker.ts';

export interface Drawn {
  readonly drawing: GraphDrawing;
  /** The shown data: things are positions in it. */
  readonly data: GraphData;
  /** The page may have requested another choice since. */
  readonly choice: GraphChoice;
}

/**
 * A worker draws, because the layout of a large graph would block the page. `drawn` is the last drawing, until the next one is ready. While
 * a button is pressed in `figure`, the picture stays: a box that moved away would lose the click.
 */
export function useDrawing(
  data: GraphData | undefined,
  choice: GraphChoice,
  figure: RefObject<HTMLElement | null>,
): { readonly drawn: Drawn | null; readonly hasFailed: boolean; readonly retry: () => void } {
  const [drawn, setDrawn] = useState<Drawn | null>(null);
  const [hasFailed, setHasFailed] = useState(false);
  const [attempt, setAttempt] = useState(0);
  const worker = useRef<Worker | null>(null);
  const sent = useRef<{ data: GraphData | null; number: number; choice: GraphChoice }>({
    data: null,
    number: 0,
    choice,
  });
  const show = useCallback((answer: GraphDrawing): void => {
    const { choice: asked, data: of, number } = sent.current;
    if (answer.number === number && of !== null) setDrawn({ drawing: answer, data: of, choice: asked });
  }, []);
  const take = useWhileReleased(figure, show);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each attempt is a new worker.
  useEffect(() => {
    const made = new Worker(new URL('./graph-worker.ts', import.meta.url), { type: 'module' });
    worker.current = made;
    sent.current = { ...sent.current, data: null, number: 0 };
    made.onmessage = ({ data: answer }: MessageEvent<GraphDrawing>) => take(answer);
    made.onerror = () => setHasFailed(true);
    return () => made.terminate();
  }, [attempt]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new worker knows nothing.
  useEffect(() => {
    if (data === undefined) return;
    const number = sent.current.number + 1;
    const question: GraphQuestion = { number, data: sent.current.data === data ? null : data, choice };
    sent.current = { data, number, choice };
    worker.current?.postMessage(question);
  }, [attempt, data, choice]);
  const retry = (): void => {
    setHasFailed(false);
    setAttempt(attempt + 1);
  };
  return { drawn, hasFailed, retry };
}

/** A menu takes the release event of the button. */
const releases = ['pointerup', 'pointercancel', 'contextmenu'];

/** Otherwise, with the last value once the button in `figure` is released. */
function useWhileReleased<T>(figure: RefObject<HTMLElement | null>, act: (value: T) => void): (value: T) => void {
  const state = useRef<{ isPressed: boolean; late: T | null }>({ isPressed: false, late: null });
  useEffect(() => {
    const press = ({ button, target }: PointerEvent): void => {
      if (button === 0) state.current.isPressed = figure.current?.contains(target as Node) ?? false;
    };
    // The click follows the release.
    const release = (): void =>
      void setTimeout(() => {
        const { late } = state.current;
        state.current = { isPressed: false, late: null };
        if (late !== null) act(late);
      });
    document.addEventListener('pointerdown', press, true);
    for (const event of releases) document.addEventListener(event, release, true);
    window.addEventListener('blur', release);
    return () => {
      document.removeEventListener('pointerdown', press, true);
      for (const event of releases) document.removeEventListener(event, release, true);
      window.removeEventListener('blur', release);
    };
  }, [act, figure]);
  return (value) => {
    if (state.current.isPressed) state.current.late = value;
    else act(value);
  };
}
