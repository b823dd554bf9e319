import { useEffect, useRef, useState } from 'react';
import type { GraphChoice, GraphData } from './graph-data.ts';
import type { GraphDrawing, GraphQuestion } from './graph-worker.ts';

/** What a worker has laid out: the layout of a large graph would block the page. `drawing`: the last one, until the next is there. */
export function useDrawing(
  data: GraphData | undefined,
  choice: GraphChoice,
): { readonly drawing: GraphDrawing | null; readonly hasFailed: boolean; readonly retry: () => void } {
  const [drawing, setDrawing] = useState<GraphDrawing | null>(null);
  const [hasFailed, setHasFailed] = useState(false);
  const [attempt, setAttempt] = useState(0);
  const worker = useRef<Worker | null>(null);
  const sent = useRef<{ data: GraphData | null; number: number }>({ data: null, number: 0 });
  // biome-ignore lint/correctness/useExhaustiveDependencies: each attempt is a new worker.
  useEffect(() => {
    const made = new Worker(new URL('./graph-worker.ts', import.meta.url), { type: 'module' });
    worker.current = made;
    sent.current = { data: null, number: 0 };
    made.onmessage = ({ data: answer }: MessageEvent<GraphDrawing>) => {
      if (answer.number === sent.current.number) setDrawing(answer);
    };
    made.onerror = () => setHasFailed(true);
    return () => made.terminate();
  }, [attempt]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new worker knows nothing.
  useEffect(() => {
    if (data === undefined) return;
    const number = sent.current.number + 1;
    const question: GraphQuestion = { number, data: sent.current.data === data ? null : data, choice };
    sent.current = { data, number };
    worker.current?.postMessage(question);
  }, [attempt, data, choice]);
  const retry = (): void => {
    setHasFailed(false);
    setAttempt(attempt + 1);
  };
  return { drawing, hasFailed, retry };
}
