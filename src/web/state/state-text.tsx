import { useQuery } from '@tanstack/react-query';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useMemo, useRef } from 'react';
import { ofVersions } from '../platform/app/of-versions.ts';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import type { StackRef } from '../platform/app/procedure-types.ts';
import { trpc } from '../platform/app/trpc.ts';
import { Skeleton } from '../platform/ui/skeleton.tsx';
import { jsonLines } from './json-lines.ts';
import styles from './state-text.module.css';
import { stateTextTexts } from './texts.tsx';

const linePixels = 20;
/** Longer lines are cut, in characters. */
const maxCharacters = 4_000;

/** Only the visible lines are rendered. */
export function StateText({
  id,
  stack,
  version,
}: {
  readonly stack: StackRef;
  readonly version: number;
  readonly id: string;
}) {
  const { organization, project, stack: name } = stack;
  const query = useQuery(
    trpc.versions.text.queryOptions(
      { organization, project, stack: name, version },
      // Each read is recorded: refreshing the page does not repeat it.
      ofVersions(id),
    ),
  );
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  if (query.data === undefined) return <Skeleton width="60%" />;
  if (query.data.text === null) return <p>{stateTextTexts.tooLarge}</p>;
  return <Lines text={query.data.text} label={stateTextTexts.label(version)} />;
}

function Lines({ label, text }: { readonly text: string; readonly label: string }) {
  const lines = useMemo(() => jsonLines(text), [text]);
  const box = useRef<HTMLDivElement>(null);
  const virtualizer = useVirtualizer({
    count: lines.length,
    getScrollElement: () => box.current,
    estimateSize: () => linePixels,
    overscan: 30,
  });
  const digits = String(lines.length).length;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it.
    <section ref={box} className={styles['box']} aria-label={label} tabIndex={0}>
      <div className={styles['lines']} style={{ height: virtualizer.getTotalSize() }}>
        {virtualizer.getVirtualItems().map(({ index, key, start }) => {
          const line = lines[index] ?? '';
          return (
            <pre key={key} className={styles['line']} style={{ transform: `translateY(${start}px)` }}>
              <span className={styles['number']} style={{ width: `${digits + 1}ch` }} aria-hidden="true">
                {index + 1}
              </span>
              {line.length > maxCharacters ? `${line.slice(0, maxCharacters)}…` : line}
            </pre>
          );
        })}
      </div>
    </section>
  );
}
