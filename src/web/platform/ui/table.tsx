import type { ReactNode } from 'react';
import { Button } from './button.tsx';
import { Skeleton } from './skeleton.tsx';
import styles from './table.module.css';
import { tableTexts } from './texts.tsx';

export interface Column<Item> {
  readonly name: string;
  readonly cell: (item: Item) => ReactNode;
  /** Numbers and times are right-aligned. */
  readonly align?: 'right';
  /** The title of the row: on phones, it has no column name before it. */
  readonly isTitle?: boolean;
  /** The column's name is for screen readers only. */
  readonly isActions?: boolean;
}

const skeletonRows = [38, 52, 44, 60, 41];

/**
 * On phones, each row becomes a block of names and values. For lists of thousands of items that users scroll through, use a virtual list.
 * `items` is undefined while the first page is loading.
 */
export function Table<Item>({
  columns,
  details,
  empty,
  hasMore = false,
  isBusy = false,
  items,
  keyOf,
  label,
  onMore,
}: {
  readonly label: string;
  readonly columns: readonly Column<Item>[];
  readonly items: readonly Item[] | undefined;
  readonly keyOf: (item: Item, at: number) => string;
  readonly empty: ReactNode;
  readonly hasMore?: boolean;
  readonly isBusy?: boolean;
  readonly onMore?: () => void;
  /** The content below a row, if any. */
  readonly details?: (item: Item) => ReactNode;
}) {
  if (items?.length === 0) return empty;
  return (
    <div className={styles['scroll']}>
      <table className={styles['table']} aria-label={label} aria-busy={items === undefined || isBusy}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.name} scope="col" className={classOf(column)}>
                {column.isActions ? <span className="unseen">{column.name}</span> : column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {items === undefined
            ? skeletonRows.map((width) => (
                <tr key={width}>
                  {columns.map((column, at) => (
                    <td key={column.name} className={classOf(column)}>
                      {column.isActions ? null : <Skeleton width={at === 0 ? width * 3 : 72} />}
                    </td>
                  ))}
                </tr>
              ))
            : items.map((item, at) => (
                <Row key={keyOf(item, at)} columns={columns} item={item} details={details?.(item)} />
              ))}
        </tbody>
      </table>
      {hasMore ? (
        <div className={styles['more']}>
          <Button onClick={onMore} disabled={isBusy}>
            {isBusy ? tableTexts.loading : tableTexts.showMore}
          </Button>
        </div>
      ) : null}
    </div>
  );
}

function Row<Item>({
  columns,
  details,
  item,
}: {
  readonly columns: readonly Column<Item>[];
  readonly item: Item;
  readonly details: ReactNode;
}) {
  const hasDetails = details !== undefined && details !== null && details !== false;
  return (
    <>
      <tr className={hasDetails ? styles['open'] : undefined}>
        {columns.map((column) => (
          <td key={column.name} className={classOf(column)} data-name={column.name}>
            {column.cell(item)}
          </td>
        ))}
      </tr>
      {hasDetails ? (
        <tr className={styles['details']}>
          <td colSpan={columns.length}>{details}</td>
        </tr>
      ) : null}
    </>
  );
}

function classOf({ align, isActions, isTitle }: Omit<Column<never>, 'cell' | 'name'>): string | undefined {
  const names = [
    align === 'right' && styles['right'],
    isActions && styles['actions'],
    isTitle && styles['title'],
  ].filter(Boolean);
  return names.length === 0 ? undefined : names.join(' ');
}
