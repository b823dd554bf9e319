import { type ReactNode, useState } from 'react';
import styles from './accordion-list.module.css';

export function AccordionList<Item>({
  items,
  keyOf,
  row,
}: {
  readonly items: readonly Item[];
  readonly keyOf: (item: Item, at: number) => string | number;
  readonly row: (item: Item) => ReactNode;
}) {
  return (
    <ul className={styles['items']}>
      {items.map((item, at) => (
        <li key={keyOf(item, at)}>{row(item)}</li>
      ))}
    </ul>
  );
}

/** `children` is called only if the item is open. */
export function AccordionRow({
  children,
  fact,
  isOpen: isOpenFirst = false,
  name,
  sign,
  type,
  urn,
}: {
  readonly name: string;
  readonly type: string;
  readonly urn: string;
  /** Shown before the name. */
  readonly sign?: ReactNode;
  /** Shown at the right. */
  readonly fact: ReactNode;
  readonly isOpen?: boolean;
  readonly children: () => ReactNode;
}) {
  const [isOpen, setIsOpen] = useState(isOpenFirst);
  return (
    <details open={isOpen} onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}>
      <summary className={styles['summary']} title={urn}>
        {sign}
        <span className={styles['name']}>{name}</span>
        <span className={styles['type']}>{type}</span>
        <span className={styles['fact']}>{fact}</span>
      </summary>
      {isOpen ? children() : null}
    </details>
  );
}
