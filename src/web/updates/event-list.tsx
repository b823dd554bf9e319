import { useInfiniteQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { ChevronDown, ChevronRight } from 'lucide-react';
import { useMemo } from 'react';
import { ListTextFilter } from '../platform/app/list-text-filter.tsx';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import type { StackRef, UpdateDetails } from '../platform/app/procedure-types.ts';
import { nameInUrn } from '../platform/app/resource-name.ts';
import { every, trpc } from '../platform/app/trpc.ts';
import { Empty } from '../platform/ui/empty.tsx';
import { JsonView } from '../platform/ui/json-view.tsx';
import { ListSection, ListSelect } from '../platform/ui/list-bar.tsx';
import { fetchMore } from '../platform/ui/paged-list.ts';
import { PrintNote } from '../platform/ui/print-note.tsx';
import { RowButton } from '../platform/ui/row-button.tsx';
import { clockTime, exactTime, useTimeDisplay } from '../platform/ui/time-display.ts';
import { useToggles } from '../platform/ui/toggles.ts';
import { VirtualList } from '../platform/ui/virtual-list.tsx';
import { stripColors } from './colored-text.ts';
import { describeEvent, type EngineEvent, eventKinds, readEvent } from './engine-event.ts';
import styles from './event-list.module.css';
import { useRefetchOnChange } from './refetch-on-change.ts';
import { eventListTexts } from './texts.tsx';
import type { UpdateSearch } from './update-search.ts';
import { isActive } from './update-status.ts';

const rowPixels = 36;
const pageSize = 200;
const pollMs = 2_000;

interface EventListProps {
  readonly stack: StackRef;
  readonly update: UpdateDetails;
  readonly search: UpdateSearch;
}

interface EventRow extends ReturnType<typeof describeEvent> {
  readonly event: EngineEvent;
  readonly asSent: unknown;
}

/** Everything that the engine reported, the newest first. */
export function EventList({ search, stack, update }: EventListProps) {
  const navigate = useNavigate();
  const change = (changes: Partial<UpdateSearch>): void =>
    void navigate({ to: '.', search: (before) => ({ ...before, ...changes }), replace: true, resetScroll: false });
  const [opened, toggle] = useToggles<number>();
  const { organization, project, stack: name } = stack;
  const input = { organization, project, stack: name, updateId: update.updateId, newestFirst: true, limit: pageSize };
  const query = useInfiniteQuery(
    trpc.updates.events.infiniteQueryOptions(
      { ...input, ...(search.type === undefined ? {} : { type: search.type }) },
      { getNextPageParam: (page) => page.next, refetchInterval: every(isActive(update) ? pollMs : null) },
    ),
  );
  useRefetchOnChange(update.status, query.refetch);
  const problem = useProblem(query);
  const pages = problem ? undefined : query.data?.pages;
  const rows = useMemo(() => listRows(pages ?? [], search.text ?? ''), [pages, search.text]);
  return (
    <ListSection
      label={eventListTexts.events}
      facts={eventListTexts.count(rows.length, query.hasNextPage)}
      bar={
        <>
          <ListTextFilter
            label={eventListTexts.searchInEvents}
            placeholder={eventListTexts.searchInEvents}
            value={search.text}
            onText={(text) => change({ text })}
          />
          <ListSelect
            label={eventListTexts.kindOfEvent}
            value={search.type ?? ''}
            onChange={({ target }) => change({ type: target.value || undefined })}
          >
            <option value="">{eventListTexts.allKinds}</option>
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
        <Empty
          title={
            search.text === undefined && search.type === undefined
              ? eventListTexts.noEvents
              : eventListTexts.noEventMatches
          }
        >
          <p>{eventListTexts.noEventsHint}</p>
        </Empty>
      ) : null}
      {/* A search continues through older events until its hits fill the window. */}
      <VirtualList
        items={rows}
        keyOf={sequenceOf}
        rowPx={rowPixels}
        onEnd={() => fetchMore(query)}
        row={(row) => (
          <Row row={row} isOpen={opened.has(row.event.sequence)} onToggle={() => toggle(row.event.sequence)} />
        )}
      />
      <PrintNote count={rows.length} hasMore={query.hasNextPage} />
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
    const row = { ...described, text: stripColors(described.text), event, asSent: item };
    if (wanted === '' || `${row.urn ?? ''} ${row.text} ${row.label}`.toLowerCase().includes(wanted)) rows.push(row);
  }
  return rows;
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
  const { asSent, event, label, text, urn } = row;
  const time = new Date(event.timestamp * 1000);
  const display = useTimeDisplay();
  return (
    <>
      <RowButton className={styles['row']} aria-expanded={isOpen} onClick={onToggle}>
        {isOpen ? <ChevronDown size={14} aria-hidden="true" /> : <ChevronRight size={14} aria-hidden="true" />}
        <span className={styles['sequence']}>{event.sequence}</span>
        <time className={styles['time']} dateTime={time.toISOString()} title={exactTime(time)}>
          {clockTime(time, display)}
        </time>
        <span className={styles['kind']}>{label}</span>
        <span className={styles['resource']} title={urn ?? undefined}>
          {urn === null ? '' : nameInUrn(urn)}
        </span>
        <span className={styles['text']}>{text}</span>
      </RowButton>
      {isOpen ? (
        <div className={styles['opened']}>
          <JsonView label={eventListTexts.event(event.sequence)} value={asSent} />
        </div>
      ) : null}
    </>
  );
}
