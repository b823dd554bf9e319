import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Download, Rocket } from 'lucide-react';
import type { CiDays } from '../platform/app/ci-search.ts';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import type { CiDelivery } from '../platform/app/procedure-types.ts';
import { every, trpc } from '../platform/app/trpc.ts';
import { buttonClass } from '../platform/ui/button.tsx';
import { Empty } from '../platform/ui/empty.tsx';
import { numberLocale } from '../platform/ui/locale.ts';
import { Section } from '../platform/ui/page.tsx';
import { duration } from '../platform/ui/relative-time.ts';
import { StatTiles } from '../platform/ui/stat-tiles.tsx';
import { type Column, Table } from '../platform/ui/table.tsx';
import styles from './delivery-view.module.css';
import { rate } from './summaries.ts';
import { deliveryTexts } from './texts.ts';

const refreshMs = 60_000;

type Project = CiDelivery['projects'][number];
type Times = Project['leadTime'];

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
      <Empty title={deliveryTexts.noRuns(days)} icon={<Rocket size={20} />}>
        <p>{deliveryTexts.noRunsHint}</p>
      </Empty>
    );
  return (
    <>
      <StatTiles
        statistics={[
          {
            name: deliveryTexts.changeRate,
            value: total && perDay(total.changesPerDay),
            note: total && deliveryTexts.changes(total.changed),
          },
          {
            name: deliveryTexts.failureRate,
            value: total && rate(total.failed, total.finished),
            note: total && deliveryTexts.failedOf(total.failed, total.finished),
            tone: total && total.failed * 10 > total.finished ? 'failure' : undefined,
          },
          {
            name: deliveryTexts.leadTime,
            value: total && median(total.leadTime),
            note: total && slowest(total.leadTime),
          },
          {
            name: deliveryTexts.timeToRestore,
            value: total && median(total.timeToRestore),
            note: total && slowest(total.timeToRestore),
          },
        ]}
      />
      <Section
        title={deliveryTexts.projects}
        actions={
          <a
            className={buttonClass({ kind: 'quiet', size: 'small' })}
            href={`/trpc/download/delivery.csv?${new URLSearchParams({ organization, days: String(days) }).toString()}`}
            download="delivery.csv"
          >
            <Download size={15} aria-hidden="true" />
            {deliveryTexts.csv}
          </a>
        }
      >
        <Table
          label={deliveryTexts.label}
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
      name: deliveryTexts.project,
      isTitle: true,
      cell: ({ project }) => (
        <Link to="/$organization" params={{ organization }} search={{ project }}>
          {project}
        </Link>
      ),
    },
    {
      name: deliveryTexts.changesColumn,
      align: 'right',
      cell: ({ changed }) => changed.toLocaleString(numberLocale),
    },
    { name: deliveryTexts.changeRate, align: 'right', cell: ({ changesPerDay }) => perDay(changesPerDay) },
    { name: deliveryTexts.failureRate, align: 'right', cell: ({ failed, finished }) => rate(failed, finished) },
    { name: deliveryTexts.leadTime, align: 'right', cell: ({ leadTime }) => median(leadTime) },
    { name: deliveryTexts.timeToRestore, align: 'right', cell: ({ timeToRestore }) => median(timeToRestore) },
  ];
}

function Terms({ isTrimmed }: { readonly isTrimmed: boolean }) {
  return (
    <dl className={styles['terms']}>
      <dt>{deliveryTexts.changeRate}</dt>
      <dd>{deliveryTexts.changeRateMeaning}</dd>
      <dt>{deliveryTexts.failureRate}</dt>
      <dd>{deliveryTexts.failureRateMeaning}</dd>
      <dt>{deliveryTexts.leadTime}</dt>
      <dd>{deliveryTexts.leadTimeMeaning}</dd>
      <dt>{deliveryTexts.timeToRestore}</dt>
      <dd>{deliveryTexts.timeToRestoreMeaning}</dd>
      <dt>{deliveryTexts.notCounted}</dt>
      <dd>{deliveryTexts.notCountedMeaning(isTrimmed)}</dd>
    </dl>
  );
}

function perDay(value: number): string {
  return deliveryTexts.perDay(value.toLocaleString(numberLocale, { maximumSignificantDigits: 2 }));
}

function median(times: Times): string {
  return times === null ? '–' : duration(times.medianSeconds);
}

function slowest(times: Times): string {
  return times === null ? 'none' : deliveryTexts.mostWithin(duration(times.p90Seconds));
}
