import { type ReactNode, useEffect, useRef } from 'react';
import styles from './virtual-list.module.css';
import { useVirtualRows } from './virtual-rows.ts';

/** The next page of a list is fetched when this many rows are left. */
const rowsAhead = 50;

/** Only the rows that are in view are elements. */
export function VirtualList<Item>({
  items,
  keyOf,
  label,
  onEnd,
  row,
  rowPx,
}: {
  readonly items: readonly Item[];
  /** A stable function, like the items: see useVirtualRows. */
  readonly keyOf: (item: Item) => string | number;
  readonly label?: string;
  /** Called repeatedly while the last rows are in view. */
  readonly onEnd?: () => void;
  readonly row: (item: Item) => ReactNode;
  /** Of a closed row. Rows that are higher are measured. */
  readonly rowPx: number;
}) {
  const list = useRef<HTMLOListElement>(null);
  const { height, lastIndex, measure, rows } = useVirtualRows({ items, keyOf, list, rowPx });
  useEffect(() => {
    if (lastIndex >= items.length - rowsAhead) onEnd?.();
  });
  return (
    <ol ref={list} className={styles['rows']} aria-label={label} style={{ height }} data-window-rows>
      {rows.map(({ index, item, key, offsetPx }) => (
        <li
          key={key}
          ref={measure}
          data-index={index}
          className={styles['place']}
          style={{ transform: `translateY(${offsetPx}px)` }}
          aria-posinset={index + 1}
          aria-setsize={onEnd === undefined ? items.length : -1}
        >
          {row(item)}
        </li>
      ))}
    </ol>
  );
}
