import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { HardDrive } from 'lucide-react';
import { useEffect } from 'react';
import type { OperatorOrganization, OperatorStorage } from '../platform/app/contract.ts';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import { StorageGrowth } from '../platform/app/storage-growth.tsx';
import { every, trpc } from '../platform/app/trpc.ts';
import { byteText } from '../platform/ui/byte-text.ts';
import { Empty } from '../platform/ui/empty.tsx';
import { Page, Section } from '../platform/ui/page.tsx';
import { pagedList } from '../platform/ui/paged-list.ts';
import { StatTiles } from '../platform/ui/stat-tiles.tsx';
import { type Column, Table } from '../platform/ui/table.tsx';
import { Time } from '../platform/ui/time.tsx';

const refreshMs = 60_000;

/** Storage use by place, and its growth. */
export function StoragePage() {
  const query = useQuery(trpc.operator.storage.queryOptions(undefined, { refetchInterval: every(refreshMs) }));
  const organizations = useInfiniteQuery(
    trpc.operator.organizations.infiniteQueryOptions(
      {},
      { getNextPageParam: ({ next }) => next, placeholderData: keepPreviousData },
    ),
  );
  useEffect(() => {
    document.title = 'Storage - Holdfast';
  }, []);
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const { data } = query;
  const last = data?.days.at(-1);
  const kept = (read: (day: NonNullable<typeof last>) => number) => data && (last ? byteText(read(last)) : '–');
  return (
    <Page
      title="Storage"
      lead="Storage use of organizations is measured several times a day, after compression, in Postgres and in the blob store."
    >
      <StatTiles
        statistics={[
          { name: 'Database', value: data && byteText(data.databaseBytes), note: 'with indexes' },
          { name: 'States', value: kept(({ stateBytes }) => stateBytes), note: 'all versions' },
          {
            name: 'Journals',
            value: kept(({ journalBytes }) => journalBytes),
            note: 'not compacted or not deleted yet',
          },
          { name: 'Events', value: kept(({ eventBytes }) => eventBytes), note: 'logs of updates' },
        ]}
      />
      {data && <StorageGrowth title="All organizations" days={data.days} />}
      <Section title="Organizations">
        <Table
          label="Organizations"
          columns={organizationColumns}
          {...pagedList(organizations)}
          keyOf={({ organization }) => organization}
          empty={
            <Empty title="Not measured yet" icon={<HardDrive size={20} />}>
              <p>A worker measures each organization within the next hour.</p>
            </Empty>
          }
        />
      </Section>
      <Section title="Largest tables" lead="Postgres tables with their indexes. Row counts are estimates.">
        <Table
          label="Largest tables"
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
    name: 'Organization',
    isTitle: true,
    cell: ({ organization }) => (
      <Link to="/$organization" params={{ organization }}>
        {organization}
      </Link>
    ),
  },
  { name: 'Stacks', align: 'right', cell: ({ stacks }) => stacks.toLocaleString() },
  { name: 'States', align: 'right', cell: ({ stateBytes }) => byteText(stateBytes) },
  { name: 'Journals', align: 'right', isMinor: true, cell: ({ journalBytes }) => byteText(journalBytes) },
  { name: 'Events', align: 'right', isMinor: true, cell: ({ eventBytes }) => byteText(eventBytes) },
  { name: 'Total', align: 'right', cell: ({ bytes }) => byteText(bytes) },
  {
    name: 'Change in 30 days',
    align: 'right',
    cell: ({ bytes, bytesBefore }) =>
      bytesBefore === null || bytesBefore === bytes
        ? '–'
        : `${bytes < bytesBefore ? '−' : '+'}${byteText(Math.abs(bytes - bytesBefore))}`,
  },
  { name: 'Measured', align: 'right', isMinor: true, cell: ({ measuredAt }) => <Time at={measuredAt} /> },
];

const tableColumns: readonly Column<OperatorStorage['tables'][number]>[] = [
  { name: 'Table', isTitle: true, cell: ({ name }) => <code>{name}</code> },
  { name: 'Rows', align: 'right', cell: ({ rows }) => rows.toLocaleString() },
  { name: 'Size', align: 'right', cell: ({ bytes }) => byteText(bytes) },
];
