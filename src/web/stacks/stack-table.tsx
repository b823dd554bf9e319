import { Link } from '@tanstack/react-router';
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { ExternalLink, Star } from 'lucide-react';
import { type CSSProperties, useEffect, useLayoutEffect, useRef, useState } from 'react';
import type { StackItem } from '../app/contract.ts';
import { Tag } from '../ui/badge.tsx';
import { Skeleton } from '../ui/skeleton.tsx';
import { Time } from '../ui/time.tsx';
import { shortCommit } from '../updates/update-status.ts';
import { toggleFavourite, useFavourites } from './favourites.ts';
import { columnNames, gridTemplate, type StackColumn } from './stack-columns.ts';
import { isTyping } from './stack-filter-bar.tsx';
import { DriftBadge, StackStatus } from './stack-status.tsx';
import styles from './stack-table.module.css';

const rowPx = 44;
const narrowRowPx = 76;
const narrow = '(width < 800px)';
/** The next page is fetched when this many rows are left. */
const rowsAhead = 40;
const skeletonRows = [34, 22, 28, 40, 25, 31, 24, 36, 27, 30];
/** Tags that the service or the CLI sets; others say more. */
const ownTag = /^(pulumi|git|vcs|gitHub):/;

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

/** Stacks as rows. Only those that are in view are elements, so that any number of them scrolls. */
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
  /** These are the rows of the filter before. */
  readonly isBusy: boolean;
  readonly showsOrganization: boolean;
}) {
  const body = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const height = useRowPx();
  useLayoutEffect(() => setTop(body.current?.offsetTop ?? 0), []);
  const virtualizer = useWindowVirtualizer({
    count: items.length,
    estimateSize: () => height,
    overscan: 12,
    scrollMargin: top,
    getItemKey: (at) => nameOf(items[at] as StackItem),
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: rows have another height from then on.
  useEffect(() => virtualizer.measure(), [height, virtualizer]);
  const rows = virtualizer.getVirtualItems();
  const isNearEnd = (rows.at(-1)?.index ?? 0) >= items.length - rowsAhead;
  useEffect(() => {
    if (isNearEnd && hasMore && !isBusy) onMore();
  }, [hasMore, isBusy, isNearEnd, onMore]);
  useRowKeys(body, items.length, (at) => virtualizer.scrollToIndex(at, { align: 'auto' }));
  return (
    <div
      role="table"
      aria-label="Stacks"
      aria-rowcount={hasMore ? -1 : items.length + 1}
      aria-busy={isBusy}
      className={styles['table']}
      style={gridOf(columns)}
    >
      <Head columns={columns} />
      <div ref={body} role="rowgroup" className={styles['body']} style={{ height: virtualizer.getTotalSize() }}>
        {rows.map(({ index, key, start }) => (
          <Row
            key={key}
            item={items[index] as StackItem}
            columns={columns}
            index={index}
            offsetPx={start - top}
            showsOrganization={showsOrganization}
          />
        ))}
      </div>
    </div>
  );
}

/** Widths of columns, for the style sheet. */
function gridOf(columns: readonly StackColumn[]): CSSProperties {
  return {
    '--columns': gridTemplate(columns, false),
    '--narrow-columns': gridTemplate(columns, true),
  } as CSSProperties;
}

function Head({ columns }: { readonly columns: readonly StackColumn[] }) {
  const names = [
    ['favourite', 'Favourite'],
    ['stack', 'Stack'],
    ...columns.map((column) => [column, columnNames[column]]),
  ];
  return (
    <div role="rowgroup">
      <div role="row" aria-rowindex={1} className={`${styles['row']} ${styles['head']}`}>
        {names.map(([id = '', name]) => (
          <div role="columnheader" key={id} className={styles[id]}>
            {id === 'favourite' ? <span className="unseen">{name}</span> : name}
          </div>
        ))}
      </div>
    </div>
  );
}

function Row({
  columns,
  index,
  item,
  offsetPx,
  showsOrganization,
}: {
  readonly columns: readonly StackColumn[];
  readonly item: StackItem;
  readonly index: number;
  readonly offsetPx: number;
  readonly showsOrganization: boolean;
}) {
  const { organization, project, stack } = item;
  const name = nameOf(item);
  const isFavourite = useFavourites().some((each) => nameOf(each) === name);
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      className={styles['row']}
      style={{ transform: `translateY(${offsetPx}px)` }}
    >
      <div role="cell" className={styles['favourite']}>
        <button
          type="button"
          aria-pressed={isFavourite}
          aria-label={`Favourite ${name}`}
          onClick={() => toggleFavourite(item)}
        >
          <Star size={15} aria-hidden="true" />
        </button>
      </div>
      <div role="cell" className={styles['stack']}>
        <Link
          to="/$organization/$project/$stack"
          params={{ organization, project, stack }}
          data-row={index}
          className={styles['name']}
          title={name}
        >
          <span className={styles['project']}>
            {showsOrganization ? `${organization}/` : null}
            {project}/
          </span>
          {stack}
        </Link>
      </div>
      {columns.map((column) => (
        <div key={column} role="cell" className={styles[column]}>
          <Cell column={column} item={item} />
        </div>
      ))}
    </div>
  );
}

function Cell({ column, item }: { readonly column: StackColumn; readonly item: StackItem }) {
  const { active, drift, lastUpdate, resourceCount, updatedAt, version } = item;
  switch (column) {
    case 'status': {
      const ciUrl = active?.ciUrl ?? (active ? null : lastUpdate?.ciUrl) ?? null;
      return (
        <>
          <StackStatus {...item} />
          <DriftBadge drift={drift} />
          {ciUrl === null ? null : (
            <a
              className={styles['ci']}
              href={ciUrl}
              target="_blank"
              rel="noreferrer"
              aria-label={`CI run of ${nameOf(item)}`}
              title="CI run"
            >
              <ExternalLink size={14} aria-hidden="true" />
            </a>
          )}
        </>
      );
    }
    case 'tags':
      return Object.entries(item.tags)
        .filter(([tag]) => !ownTag.test(tag))
        .slice(0, 2)
        .map(([tag, value]) => (
          <Link key={tag} to="." search={(before) => ({ ...before, tag: `${tag}=${value}` })} activeProps={{}}>
            <Tag name={tag} value={value} />
          </Link>
        ));
    case 'resources':
      return (
        <>
          {resourceCount?.toLocaleString() ?? '–'}
          <span className={styles['unit']}> resources</span>
        </>
      );
    case 'changed':
      return <Time at={updatedAt} />;
    case 'version':
      return version === 0 ? '–' : version;
    case 'owner':
      return active?.by ?? '–';
    case 'by':
      return lastUpdate?.by ?? '–';
    case 'commit':
      return lastUpdate?.commit == null ? '–' : <code title={lastUpdate.commit}>{shortCommit(lastUpdate.commit)}</code>;
  }
}

function nameOf({ organization, project, stack }: Pick<StackItem, 'organization' | 'project' | 'stack'>): string {
  return `${organization}/${project}/${stack}`;
}

/** j and k, or the arrows, move between rows; Enter follows the link that has the focus. */
function useRowKeys(body: React.RefObject<HTMLElement | null>, count: number, scrollTo: (at: number) => void): void {
  useEffect(() => {
    const focus = (at: number, triesLeft: number): void => {
      const link = body.current?.querySelector<HTMLElement>(`[data-row="${at}"]`);
      if (link) link.focus({ preventScroll: true });
      // The row becomes an element when it has scrolled into view.
      else if (triesLeft > 0) requestAnimationFrame(() => focus(at, triesLeft - 1));
    };
    const onKey = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('[role=dialog],[role=menu]')) return;
      const isInField = isTyping(event.target);
      const isDown = event.key === 'ArrowDown' || (event.key === 'j' && !isInField);
      const isUp = event.key === 'ArrowUp' || (event.key === 'k' && !isInField);
      if ((!isDown && !isUp) || count === 0) return;
      const row = document.activeElement?.closest('[role=row]')?.querySelector<HTMLElement>('[data-row]');
      const at = row ? Number(row.dataset['row']) + (isDown ? 1 : -1) : 0;
      if (at < 0 || at >= count) return;
      event.preventDefault();
      scrollTo(at);
      focus(at, 10);
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [body, count, scrollTo]);
}

/** The table while its first page is being loaded. */
export function StackTableSkeleton() {
  return (
    <div className={styles['table']} style={gridOf(['status', 'tags', 'resources', 'changed'])} aria-busy="true">
      <span className="unseen" role="status">
        Loading stacks
      </span>
      <div className={`${styles['row']} ${styles['head']}`} aria-hidden="true" />
      {skeletonRows.map((width) => (
        <div key={width} className={`${styles['row']} ${styles['still']}`} aria-hidden="true">
          <div className={styles['favourite']} />
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
