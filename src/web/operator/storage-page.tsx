import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { HardDrive } from 'lucide-react';
import { useEffect } from 'react';
import { PartProblem, Problem, useProblem } from '../platform/app/problem-pages.tsx';
import type { OperatorOrganization, OperatorStorage } from '../platform/app/procedure-types.ts';
import { StorageGrowth } from '../platform/app/storage-growth.tsx';
import { every, trpc } from '../platform/app/trpc.ts';
import { pageTexts } from '../platform/texts.tsx';
import { byteText } from '../platform/ui/byte-text.ts';
import { Empty } from '../platform/ui/empty.tsx';
import { numberLocale } from '../platform/ui/locale.ts';
import { Page, Section } from '../platform/ui/page.tsx';
import { pagedList } from '../platform/ui/paged-list.ts';
import { StatTiles } from '../platform/ui/stat-tiles.tsx';
import { type Column, Table } from '../platform/ui/table.tsx';
import { Time } from '../platform/ui/time.tsx';
import { storagePageTexts } from './texts.tsx';

const refreshMs = 60_000;

export function StoragePage() {
  const query = useQuery(trpc.operator.storage.queryOptions(undefined, { refetchInterval: every(refreshMs) }));
  const organizations = useInfiniteQuery(
    trpc.operator.organizations.infiniteQueryOptions(
      {},
      { getNextPageParam: ({ next }) => next, placeholderData: keepPreviousData },
    ),
  );
  useEffect(() => {
    document.title = pageTexts.tabTitle(pageTexts.storage);
  }, []);
  const problem = useProblem(query);
  const organizationsProblem = useProblem(organizations);
  if (problem) return <Problem {...problem} />;
  const { data } = query;
  const last = data?.days.at(-1);
  const kept = (read: (day: NonNullable<typeof last>) => number) => data && (last ? byteText(read(last)) : '–');
  return (
    <Page title={storagePageTexts.storage} lead={storagePageTexts.lead}>
      <StatTiles
        statistics={[
          {
            name: storagePageTexts.database,
            value: data && byteText(data.databaseBytes),
            note: storagePageTexts.withIndexes,
          },
          {
            name: storagePageTexts.states,
            value: kept(({ stateBytes }) => stateBytes),
            note: storagePageTexts.allVersions,
          },
          {
            name: storagePageTexts.journals,
            value: kept(({ journalBytes }) => journalBytes),
            note: storagePageTexts.notCompacted,
          },
          { name: storagePageTexts.events, value: kept(({ eventBytes }) => eventBytes), note: storagePageTexts.logs },
        ]}
      />
      {data && <StorageGrowth title={storagePageTexts.allOrganizations} days={data.days} />}
      <Section title={storagePageTexts.organizations}>
        {organizationsProblem ? (
          <PartProblem {...organizationsProblem} />
        ) : (
          <Table
            label={storagePageTexts.organizations}
            columns={organizationColumns}
            {...pagedList(organizations)}
            keyOf={({ organization }) => organization}
            empty={
              <Empty title={storagePageTexts.notMeasured} icon={<HardDrive size={20} />}>
                <p>{storagePageTexts.notMeasuredHint}</p>
              </Empty>
            }
          />
        )}
      </Section>
      <Section title={storagePageTexts.largestTables} lead={storagePageTexts.tablesLead}>
        <Table
          label={storagePageTexts.largestTables}
          columns={tableColumns}
          items={data?.tables}
          keyOf={({ name }) => name}
          empty={null}
        />
      </Section>
    </Page>
  );
}

const organizationColumns: readonly Column<OperatorOrganization>[] = [
  {
    name: storagePageTexts.organization,
    isTitle: true,
    cell: ({ organization }) => (
      <Link to="/$organization" params={{ organization }}>
        {organization}
      </Link>
    ),
  },
  { name: storagePageTexts.stacks, align: 'right', cell: ({ stacks }) => stacks.toLocaleString(numberLocale) },
  { name: storagePageTexts.states, align: 'right', cell: ({ stateBytes }) => byteText(stateBytes) },
  {
    name: storagePageTexts.journals,
    align: 'right',
    cell: ({ journalBytes }) => byteText(journalBytes),
  },
  { name: storagePageTexts.events, align: 'right', cell: ({ eventBytes }) => byteText(eventBytes) },
  { name: storagePageTexts.packs, align: 'right', cell: ({ packBytes }) => byteText(packBytes) },
  { name: storagePageTexts.total, align: 'right', cell: ({ bytes }) => byteText(bytes) },
  {
    name: storagePageTexts.change,
    align: 'right',
    cell: ({ bytes, bytesBefore }) =>
      bytesBefore === null || bytesBefore === bytes
        ? '–'
        : `${bytes < bytesBefore ? '−' : '+'}${byteText(Math.abs(bytes - bytesBefore))}`,
  },
  {
    name: storagePageTexts.measured,
    align: 'right',
    cell: ({ measuredAt }) => <Time at={measuredAt} />,
  },
];

const tableColumns: readonly Column<OperatorStorage['tables'][number]>[] = [
  { name: storagePageTexts.table, isTitle: true, cell: ({ name }) => <code>{name}</code> },
  { name: storagePageTexts.rows, align: 'right', cell: ({ rows }) => rows.toLocaleString(numberLocale) },
  { name: storagePageTexts.size, align: 'right', cell: ({ bytes }) => byteText(bytes) },
];
