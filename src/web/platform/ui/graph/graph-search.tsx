import { useMemo, useState } from 'react';
import { ListSearch } from '../list-bar.tsx';
import styles from './flow-graph.module.css';
import type { GraphData } from './graph-data.ts';
import { graphSearchTexts } from './texts.ts';

const maxFound = 20;

/** Finds things by name or kind. The first ones are listed as links. */
export function GraphSearch({
  data,
  label,
  onPick,
}: {
  readonly data: GraphData | undefined;
  readonly label: string;
  readonly onPick: (thing: number) => void;
}) {
  const [text, setText] = useState('');
  const wanted = text.trim().toLowerCase();
  const found = useMemo(() => (data === undefined || wanted === '' ? null : find(data, wanted)), [data, wanted]);
  const pick = (thing: number): void => {
    setText('');
    onPick(thing);
  };
  return (
    <search
      className={styles['search']}
      onKeyDown={({ key, nativeEvent }) => (key === 'Escape' && !nativeEvent.isComposing ? setText('') : undefined)}
    >
      <ListSearch label={label} placeholder={graphSearchTexts.field} value={text} onText={setText} />
      {found === null || data === undefined ? null : (
        <div className={styles['found']}>
          <p role="status" className={styles['count']}>
            {found.count === 0
              ? graphSearchTexts.nothing
              : found.count > maxFound
                ? graphSearchTexts.firstOf(maxFound, found.count)
                : graphSearchTexts.matches(found.count)}
          </p>
          <ul>
            {found.first.map((thing) => (
              <li key={thing}>
                <button type="button" className={styles['match']} onClick={() => pick(thing)}>
                  <span className={styles['name']}>{data.names[thing]}</span>{' '}
                  <span className={styles['detail']}>{data.kinds[data.kindOf[thing] as number]}</span>
                </button>
              </li>
            ))}
          </ul>
        </div>
      )}
    </search>
  );
}

function find({ kindOf, kinds, names }: GraphData, wanted: string): { first: number[]; count: number } {
  const isWanted = kinds.map((kind) => kind.toLowerCase().includes(wanted));
  const first: number[] = [];
  let count = 0;
  for (const [thing, name] of names.entries()) {
    if (!isWanted[kindOf[thing] as number] && !name.toLowerCase().includes(wanted)) continue;
    count += 1;
    if (first.length < maxFound) first.push(thing);
  }
  return { first, count };
}
