import { type CSSProperties, useEffect, useMemo, useRef, useState } from 'react';
import { hasPopup, isTyping } from '../platform/app/is-typing.ts';
import { useMe } from '../platform/app/me.ts';
import type { StackItem } from '../platform/app/procedure-types.ts';
import { Skeleton } from '../platform/ui/skeleton.tsx';
import { useVirtualRows } from '../platform/ui/virtual-rows.ts';
import { useFavorites } from './favorites.ts';
import { columnNames, gridTemplate, type StackColumn } from './stack-columns.ts';
import { nameOf, StackRow } from './stack-row.tsx';
import styles from './stack-table.module.css';
import { stackTableTexts } from './texts.tsx';

const rowPx = 44;
const narrowRowPx = 76;
const barPx = 56;
const narrow = '(width < 800px)';
/** The next page is fetched when this many rows are left. */
const rowsAhead = 40;
const skeletonRows = [34, 22, 28, 40, 25, 31, 24, 36, 27, 30];

function useRowPx(): number {
  const [isNarrow, setIsNarrow] = useState(() => matchMedia(narrow).matches);
  useEffect(() => {
    const media = matchMedia(narrow);
    const onChange = (): void => setIsNarrow(media.matches);
    media.addEventListener('change', onChange);
    return () => media.removeEventListener('change', onChange);
  }, []);
  return isNarrow ? narrowRowPx : rowPx;
}

/** Only visible rows are rendered, so that lists of any length scroll smoothly. */
export function StackTable({
  columns,
  hasMore,
  isBusy,
  items,
  onMore,
  showsOrganization,
}: {
  readonly columns: readonly StackColumn[];
  readonly items: readonly StackItem[];
  readonly hasMore: boolean;
  readonly onMore: () => void;
  /** Whether the rows are still from the previous filter. */
  readonly isBusy: boolean;
  readonly showsOrganization: boolean;
}) {
  const body = useRef<HTMLDivElement>(null);
  const { height, lastIndex, rows, scrollTo } = useVirtualRows({
    items,
    keyOf: nameOf,
    list: body,
    rowPx: useRowPx(),
  });
  const login = useMe()?.login;
  const favorites = useFavorites(login);
  const favoriteNames = useMemo(() => new Set(favorites.map(nameOf)), [favorites]);
  const isNearEnd = lastIndex >= items.length - rowsAhead;
  useEffect(() => {
    if (isNearEnd && hasMore && !isBusy) onMore();
  }, [hasMore, isBusy, isNearEnd, onMore]);
  useRowKeys(body, items.length, scrollTo);
  return (
    <div
      role="table"
      aria-label={stackTableTexts.stacks}
      aria-rowcount={hasMore ? -1 : items.length + 1}
      aria-busy={isBusy}
      className={styles['table']}
      style={gridOf(columns)}
    >
      <Head columns={columns} />
      <div ref={body} role="rowgroup" className={styles['body']} style={{ height }} data-window-rows>
        {rows.map(({ index, item, key, offsetPx }) => (
          <StackRow
            key={key}
            item={item}
            columns={columns}
            index={index}
            login={login}
            isFavorite={favoriteNames.has(String(key))}
            offsetPx={offsetPx}
            showsOrganization={showsOrganization}
          />
        ))}
      </div>
    </div>
  );
}

function gridOf(columns: readonly StackColumn[]): CSSProperties {
  return {
    '--columns': gridTemplate(columns, false),
    '--narrow-columns': gridTemplate(columns, true),
  } as CSSProperties;
}

function Head({ columns }: { readonly columns: readonly StackColumn[] }) {
  const names = [
    ['favorite', stackTableTexts.favorite],
    ['stack', stackTableTexts.stack],
    ...columns.map((column) => [column, columnNames[column]]),
  ];
  return (
    <div role="rowgroup">
      <div role="row" aria-rowindex={1} className={`${styles['row']} ${styles['head']}`}>
        {names.map(([id = '', name]) => (
          <div role="columnheader" key={id} className={styles[id]}>
            {id === 'favorite' ? <span className="unseen">{name}</span> : name}
          </div>
        ))}
      </div>
    </div>
  );
}

/** j and k, or the arrows, move between rows; Enter follows the focused link. */
function useRowKeys(body: React.RefObject<HTMLElement | null>, count: number, scrollTo: (at: number) => void): void {
  useEffect(() => {
    const focus = (at: number, triesLeft: number): void => {
      const link = body.current?.querySelector<HTMLElement>(`[data-row="${at}"]`);
      if (link) link.focus({ preventScroll: true });
      // The row is rendered once it has scrolled into view.
      else if (triesLeft > 0) requestAnimationFrame(() => focus(at, triesLeft - 1));
    };
    const onKey = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || hasPopup()) return;
      const isInField = isTyping(event.target);
      const isDown = event.key === 'ArrowDown' || (event.key === 'j' && !isInField);
      const isUp = event.key === 'ArrowUp' || (event.key === 'k' && !isInField);
      if ((!isDown && !isUp) || count === 0) return;
      const row = document.activeElement?.closest('[role=row]')?.querySelector<HTMLElement>('[data-row]');
      const at = row ? Number(row.dataset['row']) + (isDown ? 1 : -1) : firstInView(body.current);
      if (at < 0 || at >= count) return;
      event.preventDefault();
      scrollTo(at);
      focus(at, 10);
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [body, count, scrollTo]);
}

/** The first row below the bar at the top of the page, if scrolling has removed the focused row from the document. */
function firstInView(body: HTMLElement | null): number {
  const rows = [...(body?.querySelectorAll<HTMLElement>('[data-row]') ?? [])];
  return Number(rows.find((row) => row.getBoundingClientRect().top >= barPx)?.dataset['row'] ?? 0);
}

/** The table while its first page is being loaded. */
export function StackTableSkeleton() {
  return (
    <div className={styles['table']} style={gridOf(['status', 'tags', 'resources', 'changed'])} aria-busy="true">
      <span className="unseen" role="status">
        {stackTableTexts.loading}
      </span>
      <div className={`${styles['row']} ${styles['head']}`} aria-hidden="true" />
      {skeletonRows.map((width) => (
        <div key={width} className={`${styles['row']} ${styles['still']}`} aria-hidden="true">
          <div className={styles['favorite']} />
          <div className={styles['stack']}>
            <Skeleton width={`${width * 2}%`} />
          </div>
          <div className={styles['status']}>
            <Skeleton width={90} />
          </div>
          <div className={styles['tags']} />
          <div className={styles['resources']}>
            <Skeleton width={30} />
          </div>
          <div className={styles['changed']}>
            <Skeleton width={76} />
          </div>
        </div>
      ))}
    </div>
  );
}
