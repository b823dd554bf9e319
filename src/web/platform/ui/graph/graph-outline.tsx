import { type ReactNode, useContext, useMemo } from 'react';
import styles from './flow-graph.module.css';
import { BoxActionsContext } from './graph-box.tsx';
import type { GraphBox, GraphView } from './graph-data.ts';
import { graphBoxTexts } from './texts.ts';

const maxNamed = 10;

/** The picture as a nested list with the same buttons, and the dependencies of each box. */
export function GraphOutline({ view }: { readonly view: GraphView }) {
  const inside = useMemo(() => Map.groupBy(view.boxes, ({ parent }) => parent), [view]);
  const needs = useMemo(() => {
    const names = new Map(view.boxes.map(({ id, name }) => [id, name]));
    const found = new Map<string, string[]>();
    for (const { from, isParent, to } of view.edges) {
      if (isParent) continue;
      const known = found.get(from) ?? [];
      known.push(names.get(to) ?? '');
      found.set(from, known);
    }
    return found;
  }, [view]);
  const level = (of: string | null): ReactNode => {
    const boxes = inside.get(of) ?? [];
    if (boxes.length === 0) return null;
    return (
      <ul className={styles['level']}>
        {boxes.map((box) => (
          <li key={box.id}>
            <Item box={box} needs={needs.get(box.id) ?? []} />
            {level(box.id)}
          </li>
        ))}
      </ul>
    );
  };
  return level(null);
}

function Item({ box, needs }: { readonly box: GraphBox; readonly needs: readonly string[] }) {
  const { activate, toggle } = useContext(BoxActionsContext);
  const more = needs.length - maxNamed;
  return (
    <div className={styles['item']}>
      {box.isFaint ? (
        <span className={styles['name']}>{box.name}</span>
      ) : (
        <button
          type="button"
          className={styles['link']}
          aria-expanded={box.shape === 'group' ? (box.isExpanded ?? undefined) : undefined}
          onClick={() => activate(box)}
        >
          {box.name}
        </button>
      )}
      <span className={styles['detail']}>{box.detail}</span>
      {box.isExpanded === null || box.shape === 'group' ? null : (
        <button type="button" className={styles['link']} aria-expanded={box.isExpanded} onClick={() => toggle(box)}>
          {box.isExpanded ? graphBoxTexts.collapse : graphBoxTexts.expand}
          <span className="unseen"> {box.name}</span>
        </button>
      )}
      {needs.length === 0 ? null : (
        <span className={styles['detail']}>{graphBoxTexts.needs(needs.slice(0, maxNamed), more)}</span>
      )}
    </div>
  );
}
