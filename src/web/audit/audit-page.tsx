import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { ChevronDown, ChevronRight, Download, ScrollText } from 'lucide-react';
import { type ReactNode, useState } from 'react';
import { type AuditSearch, toAuditQuery } from '../platform/app/list-search.ts';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import type { AuditItem } from '../platform/app/procedure-types.ts';
import styles from '../platform/app/settings-page.module.css';
import { TextFilter } from '../platform/app/text-filter.tsx';
import { trpc } from '../platform/app/trpc.ts';
import { Badge } from '../platform/ui/badge.tsx';
import { Button } from '../platform/ui/button.tsx';
import { Code } from '../platform/ui/code.tsx';
import { Empty } from '../platform/ui/empty.tsx';
import { SelectField } from '../platform/ui/field.tsx';
import { Menu, MenuItem } from '../platform/ui/menu.tsx';
import { FilterBar, Page } from '../platform/ui/page.tsx';
import { type NextPageQuery, pagedList } from '../platform/ui/paged-list.ts';
import { type Column, Table } from '../platform/ui/table.tsx';
import { Time } from '../platform/ui/time.tsx';
import { useTimeDisplay, zoneOf } from '../platform/ui/time-display.ts';
import { useToggles } from '../platform/ui/toggles.ts';
import { AuditDetails } from './audit-details.tsx';
import { ExportDialog } from './audit-export.tsx';
import { DateFilter } from './date-filter.tsx';
import { auditTexts } from './texts.ts';

const route = getRouteApi('/$organization/~/audit');

export function AuditPage() {
  const { organization } = route.useParams();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const [open, toggle] = useToggles<number>();
  const [format, setFormat] = useState<'csv' | 'jsonl' | null>(null);
  const zone = zoneOf(useTimeDisplay());
  const query = useInfiniteQuery(
    trpc.audit.list.infiniteQueryOptions(
      { organization, ...toAuditQuery(search, zone) },
      { getNextPageParam: ({ next }) => next, placeholderData: keepPreviousData },
    ),
  );
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  return (
    <Page
      title={auditTexts.title}
      lead={auditTexts.lead}
      actions={
        <Menu
          align="end"
          trigger={
            <Button>
              <Download size={16} aria-hidden="true" />
              {auditTexts.export}
            </Button>
          }
        >
          <MenuItem onSelect={() => setFormat('csv')}>{auditTexts.asCsv}</MenuItem>
          <MenuItem onSelect={() => setFormat('jsonl')}>{auditTexts.asJsonLines}</MenuItem>
        </Menu>
      }
    >
      <Filters
        organization={organization}
        search={search}
        onChange={(change) => void navigate({ search: (before) => ({ ...before, ...change }), replace: true })}
      />
      <Table
        label={auditTexts.events}
        columns={auditColumns(organization, open, toggle)}
        {...pagedList(query)}
        keyOf={({ number }) => String(number)}
        details={(event) => (open.has(event.number) ? <AuditDetails event={event} /> : undefined)}
        empty={
          <NothingFound query={query}>
            <p>{auditTexts.onTheCommandLine}</p>
            <Code>pulumi org audit-log list --all</Code>
          </NothingFound>
        }
      />
      {format === null ? null : (
        <ExportDialog organization={organization} search={search} format={format} onClose={() => setFormat(null)} />
      )}
    </Page>
  );
}

/** A page of a log may be empty although older events match. `children` is a hint if no event matches. */
export function NothingFound({
  children,
  query: { fetchNextPage, hasNextPage, isFetchingNextPage },
}: {
  readonly query: NextPageQuery;
  readonly children?: ReactNode;
}) {
  return (
    <Empty title={hasNextPage ? auditTexts.nothingFoundYet : auditTexts.nothingMatches} icon={<ScrollText size={20} />}>
      {hasNextPage ? (
        <>
          <p>{auditTexts.onlyOlderEvents}</p>
          <p>
            <Button disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>
              {isFetchingNextPage ? auditTexts.searching : auditTexts.lookFurtherBack}
            </Button>
          </p>
        </>
      ) : (
        children
      )}
    </Empty>
  );
}

function Filters({
  onChange,
  organization,
  search,
}: {
  readonly organization: string;
  readonly search: AuditSearch;
  readonly onChange: (change: Partial<AuditSearch>) => void;
}) {
  const actions = useQuery(trpc.audit.actions.queryOptions({ organization }, { staleTime: Number.POSITIVE_INFINITY }))
    .data?.items;
  const { action, actor, from, object, outcome, until } = search;
  const options = (actions ?? []).map(({ description, name }) => [name, description] as const);
  return (
    <FilterBar>
      <div className={styles['filter']}>
        <TextFilter
          label={auditTexts.who}
          organization={organization}
          value={actor}
          placeholder={auditTexts.login}
          onChange={(value) => onChange({ actor: value })}
        />
      </div>
      <div className={styles['filter']}>
        <SelectField
          label={auditTexts.action}
          value={action ?? ''}
          options={[
            ['', auditTexts.anyAction],
            ...(action === undefined || options.some(([name]) => name === action) ? [] : [[action, action] as const]),
            ...options,
          ]}
          onChange={({ target }) => onChange({ action: target.value || undefined })}
        />
      </div>
      <div className={styles['filter']}>
        <TextFilter
          label={auditTexts.target}
          value={object}
          placeholder={auditTexts.partOfAName}
          onChange={(value) => onChange({ object: value })}
        />
      </div>
      <SelectField
        label={auditTexts.outcome}
        value={outcome ?? ''}
        options={[
          ['', auditTexts.any],
          ['done', auditTexts.done],
          ['refused', auditTexts.refused],
        ]}
        onChange={({ target }) => onChange({ outcome: (target.value || undefined) as AuditSearch['outcome'] })}
      />
      <DateFilter label={auditTexts.from} value={from} onChange={(value) => onChange({ from: value })} />
      <DateFilter label={auditTexts.until} value={until} onChange={(value) => onChange({ until: value })} />
    </FilterBar>
  );
}

/** `toggle` shows or hides the details of an event. */
export function auditColumns(
  organization: string,
  open: ReadonlySet<number>,
  toggle: (number: number) => void,
): readonly Column<AuditItem>[] {
  return [
    {
      name: auditTexts.action,
      isTitle: true,
      cell: ({ description, outcome }) => (
        <span className={styles['badges']}>
          {description}
          {outcome === 'refused' ? <Badge tone="failure">{auditTexts.refusedMark}</Badge> : null}
        </span>
      ),
    },
    { name: auditTexts.target, cell: ({ object }) => <AuditObject organization={organization} object={object} /> },
    {
      name: auditTexts.who,
      cell: ({ actor, isPerson, tokenName }) => (
        <span className={styles['name']}>
          {isPerson ? actor : actor.replace(/:$/, '')}
          {tokenName === '' ? null : <span className={styles['second']}>{tokenName}</span>}
        </span>
      ),
    },
    { name: auditTexts.when, align: 'right', cell: ({ at }) => <Time at={at} /> },
    {
      name: auditTexts.details,
      isActions: true,
      cell: ({ description, number }) => (
        <Button
          kind="quiet"
          size="icon"
          aria-label={auditTexts.detailsOf(description)}
          aria-expanded={open.has(number)}
          onClick={() => toggle(number)}
        >
          {open.has(number) ? <ChevronDown size={16} /> : <ChevronRight size={16} />}
        </Button>
      ),
    },
  ];
}

function AuditObject({ object, organization }: { readonly organization: string; readonly object: string }) {
  const [of, project, stack, ...rest] = object.split('/');
  const isStack = of === organization && project && stack && rest.length === 0 && !object.includes('*');
  return isStack ? (
    <Link to="/$organization/$project/$stack" params={{ organization, project, stack }} className={styles['pattern']}>
      {project}/{stack}
    </Link>
  ) : (
    <span className={styles['pattern']}>{object}</span>
  );
}
