import { useInfiniteQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { ChevronDown, ChevronRight } from 'lucide-react';
import { useEffect, useMemo, useRef, useState } from 'react';
import type { StackRef, UpdateDetails } from '../platform/app/contract.ts';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import { nameInUrn } from '../platform/app/resource-name.ts';
import { every, trpc } from '../platform/app/trpc.ts';
import { Empty } from '../platform/ui/empty.tsx';
import { JsonView } from '../platform/ui/json-view.tsx';
import { ListSearch, ListSection, ListSelect } from '../platform/ui/list-bar.tsx';
import { PaperNote } from '../platform/ui/paper-note.tsx';
import { useWindowRows } from '../platform/ui/window-rows.ts';
import { stripColors } from './colored-text.ts';
import { describeEvent, type EngineEvent, eventKinds, readEvent } from './engine-event.ts';
import styles from './event-list.module.css';
import type { UpdateSearch } from './update-search.ts';
import { isActive } from './update-status.ts';

const rowPixels = 36;
const pageSize = 200;
const pollMs = 2_000;
const clock = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hour12: false,
});

interface EventListProps {
  readonly stack: StackRef;
  readonly update: UpdateDetails;
  readonly search: UpdateSearch;
}

interface EventRow extends ReturnType<typeof describeEvent> {
  readonly event: EngineEvent;
}

/** Everything that the engine reported, the newest first. */
export function EventList({ search, stack, update }: EventListProps) {
  const navigate = useNavigate();
  const change = (changes: Partial<UpdateSearch>): void =>
    void navigate({ to: '.', search: { ...search, ...changes }, replace: true, resetScroll: false });
  const { organization, project, stack: name } = stack;
  const input = { organization, project, stack: name, updateId: update.updateId, newestFirst: true, limit: pageSize };
  const query = useInfiniteQuery(
    trpc.updates.events.infiniteQueryOptions(
      { ...input, ...(search.type === undefined ? {} : { type: search.type }) },
      { getNextPageParam: (page) => page.next, refetchInterval: every(isActive(update) ? pollMs : null) },
    ),
  );
  const problem = useProblem(query);
  const rows = useMemo(() => listRows(query.data?.pages ?? [], search.text ?? ''), [query.data, search.text]);
  const { fetchNextPage, hasNextPage, isError, isFetchingNextPage } = query;
  // A search goes on through older events until it has a page of hits.
  const wantsMore = search.text !== undefined && rows.length < pageSize;
  useEffect(() => {
    if (wantsMore && hasNextPage && !isFetchingNextPage && !isError) void fetchNextPage();
  }, [wantsMore, hasNextPage, isFetchingNextPage, isError, fetchNextPage]);
  return (
    <ListSection
      label="Events"
      facts={`${rows.length.toLocaleString()}${hasNextPage ? ' newest' : ''} events`}
      bar={
        <>
          <ListSearch
            label="Search in events"
            placeholder="Search in events"
            value={search.text ?? ''}
            onText={(text) => change({ text: text || undefined })}
          />
          <ListSelect
            label="Kind of event"
            value={search.type ?? ''}
            onChange={({ target }) => change({ type: target.value || undefined })}
          >
            <option value="">All kinds</option>
            {eventKinds.map(({ kind, label }) => (
              <option key={kind} value={kind}>
                {label}
              </option>
            ))}
          </ListSelect>
        </>
      }
    >
      {problem ? <Problem {...problem} /> : null}
      {rows.length === 0 && !query.isFetching && !query.isError ? (
        <Empty title={search.text === undefined && search.type === undefined ? 'No events' : 'No event matches'}>
          <p>Events appear here when the CLI reports them, some seconds after they happened.</p>
        </Empty>
      ) : null}
      <Rows rows={rows} onEnd={() => (hasNextPage && !isFetchingNextPage ? void fetchNextPage() : undefined)} />
      <PaperNote count={rows.length} hasMore={hasNextPage} />
    </ListSection>
  );
}

function listRows(pages: readonly { readonly items: readonly unknown[] }[], text: string): EventRow[] {
  const wanted = text.trim().toLowerCase();
  const seen = new Set<number>();
  const rows: EventRow[] = [];
  for (const item of pages.flatMap(({ items }) => items)) {
    const event = readEvent(item);
    // New events move the pages apart while they are read.
    if (event === null || seen.has(event.sequence)) continue;
    seen.add(event.sequence);
    const described = describeEvent(event);
    const row = { ...described, text: stripColors(described.text), event };
    if (wanted === '' || `${row.urn ?? ''} ${row.text} ${row.label}`.toLowerCase().includes(wanted)) rows.push(row);
  }
  return rows;
}

function Rows({ onEnd, rows }: { readonly rows: readonly EventRow[]; readonly onEnd: () => void }) {
  const list = useRef<HTMLUListElement>(null);
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set());
  const {
    height,
    lastIndex,
    measure,
    rows: shown,
  } = useWindowRows({ items: rows, keyOf: sequenceOf, list, rowPx: rowPixels });
  const isAtEnd = lastIndex >= rows.length - 1 && rows.length > 0;
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each length that the end of the list is reached at.
  useEffect(() => {
    if (isAtEnd) onEnd();
  }, [isAtEnd, rows.length]);
  const toggle = (sequence: number): void =>
    setOpened((before) => {
      const changed = new Set(before);
      if (!changed.delete(sequence)) changed.add(sequence);
      return changed;
    });
  return (
    <ul ref={list} className={styles['rows']} style={{ height }} data-window-rows>
      {shown.map(({ index, item: row, key, offsetPx }) => (
        <li
          key={key}
          ref={measure}
          data-index={index}
          className={styles['place']}
          style={{ transform: `translateY(${offsetPx}px)` }}
        >
          <Row row={row} isOpen={opened.has(sequenceOf(row))} onToggle={() => toggle(sequenceOf(row))} />
        </li>
      ))}
    </ul>
  );
}

function sequenceOf({ event }: EventRow): number {
  return event.sequence;
}

function Row({
  isOpen,
  onToggle,
  row,
}: {
  readonly row: EventRow;
  readonly isOpen: boolean;
  readonly onToggle: () => void;
}) {
  const { event, label, text, urn } = row;
  const time = new Date(event.timestamp * 1000);
  return (
    <>
      <button type="button" className={styles['row']} aria-expanded={isOpen} onClick={onToggle}>
        {isOpen ? <ChevronDown size={14} aria-hidden="true" /> : <ChevronRight size={14} aria-hidden="true" />}
        <span className={styles['sequence']}>{event.sequence}</span>
        <time className={styles['time']} dateTime={time.toISOString()} title={time.toLocaleString()}>
          {clock.format(time)}
        </time>
        <span className={styles['kind']}>{label}</span>
        <span className={styles['resource']} title={urn ?? undefined}>
          {urn === null ? '' : nameInUrn(urn)}
        </span>
        <span className={styles['text']}>{text}</span>
      </button>
      {isOpen ? (
        <div className={styles['opened']}>
          <JsonView label={`Event ${event.sequence}`} value={event} />
        </div>
      ) : null}
    </>
  );
}
