import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Download, Rocket } from 'lucide-react';
import type { CiDays } from '../platform/app/ci-search.ts';
import type { CiDelivery } from '../platform/app/contract.ts';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import { every, trpc } from '../platform/app/trpc.ts';
import { buttonClass } from '../platform/ui/button.tsx';
import { Empty } from '../platform/ui/empty.tsx';
import { Section } from '../platform/ui/page.tsx';
import { duration } from '../platform/ui/relative-time.ts';
import { StatTiles } from '../platform/ui/stat-tiles.tsx';
import { type Column, Table } from '../platform/ui/table.tsx';
import styles from './delivery-view.module.css';
import { rate } from './summaries.ts';

const refreshMs = 60_000;

type Project = CiDelivery['projects'][number];
type Times = Project['leadTime'];

/** How often, how fast and how well the projects of an organization are delivered. */
export function DeliveryView({ days, organization }: { readonly organization: string; readonly days: CiDays }) {
  const query = useQuery(
    trpc.ci.delivery.queryOptions(
      { organization, days },
      { placeholderData: keepPreviousData, refetchInterval: every(refreshMs) },
    ),
  );
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const { data } = query;
  const total = data?.total;
  if (total?.finished === 0)
    return (
      <Empty title={`No runs finished in the last ${days} days`} icon={<Rocket size={20} />}>
        <p>Updates, refreshes and destroys count when they end.</p>
      </Empty>
    );
  return (
    <>
      <StatTiles
        statistics={[
          {
            name: 'Change rate',
            value: total && perDay(total.changesPerDay),
            note: total && `${total.changed.toLocaleString()} changes`,
          },
          {
            name: 'Failure rate',
            value: total && rate(total.failed, total.finished),
            note: total && `${total.failed.toLocaleString()} of ${total.finished.toLocaleString()} runs`,
            tone: total && total.failed * 10 > total.finished ? 'failure' : undefined,
          },
          { name: 'Lead time', value: total && median(total.leadTime), note: total && slowest(total.leadTime) },
          {
            name: 'Time to restore',
            value: total && median(total.timeToRestore),
            note: total && slowest(total.timeToRestore),
          },
        ]}
      />
      <Section
        title="Projects"
        actions={
          <a
            className={buttonClass({ kind: 'quiet', size: 'small' })}
            href={`/trpc/download/delivery.csv?${new URLSearchParams({ organization, days: String(days) }).toString()}`}
            download="delivery.csv"
          >
            <Download size={15} aria-hidden="true" />
            CSV
          </a>
        }
      >
        <Table
          label="Delivery of projects"
          columns={columns(organization)}
          items={data?.projects}
          keyOf={({ project }) => project}
          empty={null}
        />
      </Section>
      <Terms isTrimmed={data?.isTrimmed ?? false} />
    </>
  );
}

function columns(organization: string): readonly Column<Project>[] {
  return [
    {
      name: 'Project',
      isTitle: true,
      cell: ({ project }) => (
        <Link to="/$organization" params={{ organization }} search={{ project }}>
          {project}
        </Link>
      ),
    },
    { name: 'Changes', align: 'right', isMinor: true, cell: ({ changed }) => changed.toLocaleString() },
    { name: 'Change rate', align: 'right', cell: ({ changesPerDay }) => perDay(changesPerDay) },
    { name: 'Failure rate', align: 'right', cell: ({ failed, finished }) => rate(failed, finished) },
    { name: 'Lead time', align: 'right', cell: ({ leadTime }) => median(leadTime) },
    { name: 'Time to restore', align: 'right', cell: ({ timeToRestore }) => median(timeToRestore) },
  ];
}

function Terms({ isTrimmed }: { readonly isTrimmed: boolean }) {
  return (
    <dl className={styles['terms']}>
      <dt>Change rate</dt>
      <dd>Successful updates and destroys that changed resources, per day.</dd>
      <dt>Failure rate</dt>
      <dd>Failed runs, of all that succeeded or failed. Previews do not count.</dd>
      <dt>Lead time</dt>
      <dd>
        Median time from the first run of a commit, previews included, to the end of the first update of a stack that
        succeeded with it, if it changed resources. The server does not know when the commit was made; a squashed or
        rebased commit is a new one.
      </dd>
      <dt>Time to restore</dt>
      <dd>Median time from a stack’s first failed run to its next successful one.</dd>
      <dt>Not counted</dt>
      <dd>
        Deleted stacks and imported histories{isTrimmed ? ', and stacks that you cannot read' : ''}. Changes and times
        count some minutes after a run has ended.
      </dd>
    </dl>
  );
}

function perDay(value: number): string {
  return `${value.toLocaleString(undefined, { maximumSignificantDigits: 2 })} per day`;
}

function median(times: Times): string {
  return times === null ? '–' : duration(times.medianSeconds);
}

function slowest(times: Times): string {
  return times === null ? 'none' : `90 % within ${duration(times.p90Seconds)}`;
}
