import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { ChartNoAxesColumn } from 'lucide-react';
import { Problem, useProblem } from '../../platform/app/problem-pages.tsx';
import type { StackRef, UpdateTrend } from '../../platform/app/procedure-types.ts';
import { every, trpc } from '../../platform/app/trpc.ts';
import { CsvButton } from '../../platform/ui/csv-button.tsx';
import { Empty } from '../../platform/ui/empty.tsx';
import { numberLocale } from '../../platform/ui/locale.ts';
import { Section } from '../../platform/ui/page.tsx';
import { type ChartPoint, PointChart } from '../../platform/ui/point-chart.tsx';
import { duration } from '../../platform/ui/relative-time.ts';
import { Skeleton } from '../../platform/ui/skeleton.tsx';
import { type Column, Table } from '../../platform/ui/table.tsx';
import { Time } from '../../platform/ui/time.tsx';
import { viewKind, viewStatus } from '../update-status.ts';
import { findOutliers } from './outliers.ts';
import styles from './stack-trends.module.css';
import { stackTrendsTexts } from './texts.tsx';

const refreshMs = 60_000;
const dayMs = 24 * 3600 * 1000;
const maxNamed = 5;
const tones: Readonly<Record<string, ChartPoint['tone']>> = { failed: 'failure', cancelled: 'neutral' };

export function StackTrends({ stack }: { readonly stack: StackRef }) {
  const query = useQuery(trpc.updates.trend.queryOptions(stack, { refetchInterval: every(refreshMs) }));
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  if (query.data === undefined)
    return (
      <div className={styles['charts']} aria-busy="true">
        <Skeleton width="100%" height={200} />
        <Skeleton width="100%" height={200} />
      </div>
    );
  const { days, isCut, items } = query.data;
  if (items.length === 0)
    return (
      <Empty title={stackTrendsTexts.noUpdates(days)} icon={<ChartNoAxesColumn size={20} />}>
        <p>{stackTrendsTexts.noUpdatesHint}</p>
      </Empty>
    );
  return (
    <>
      <div className={styles['charts']}>
        <Durations days={days} items={items} />
        <Resources items={items} />
      </div>
      <Outliers stack={stack} items={items} />
      <Section
        title={stackTrendsTexts.updates}
        lead={isCut ? stackTrendsTexts.lastUpdates(items.length) : stackTrendsTexts.lastDays(days)}
        actions={<CsvButton fileName={`${stack.project}-${stack.stack}-updates.csv`} read={() => linesOf(items)} />}
      >
        <UpdateTable stack={stack} items={items} />
      </Section>
    </>
  );
}

const nameOf = ({ kind, version }: UpdateTrend): string =>
  `${viewKind({ kind })}${version === null ? '' : ` ${version}`}`;

function Durations({ days, items }: { readonly days: number; readonly items: readonly UpdateTrend[] }) {
  const first = Math.min(Date.now() - days * dayMs, ...items.map(({ endedAt }) => Date.parse(endedAt)));
  const length = Math.max(1, Date.now() - first);
  const found = findOutliers(items);
  const points = items.map((item, index) => ({
    key: `${index}`,
    at: Math.min(1, Math.max(0, (Date.parse(item.endedAt) - first) / length)),
    value: item.seconds,
    label: [
      `${nameOf(item)}: ${duration(item.seconds)}`,
      viewStatus(item.status).word.toLowerCase(),
      ...(found?.outliers.includes(item) ? [stackTrendsTexts.unusuallyLong] : []),
    ].join(', '),
    tone: tones[item.status] ?? (found?.outliers.includes(item) ? ('warning' as const) : ('accent' as const)),
  }));
  return (
    <PointChart
      title={stackTrendsTexts.duration}
      total={found ? stackTrendsTexts.median(duration(found.median)) : ''}
      points={points}
      ends={[stackTrendsTexts.daysAgo(days), stackTrendsTexts.now]}
      format={duration}
    />
  );
}

function Resources({ items }: { readonly items: readonly UpdateTrend[] }) {
  const known = items.flatMap(({ resources, ...item }) => (resources === null ? [] : [{ ...item, resources }]));
  const last = known.at(-1);
  if (last === undefined) return null;
  const points = known.map((item, index) => ({
    key: `${index}`,
    at: known.length === 1 ? 1 : index / (known.length - 1),
    value: item.resources,
    label: stackTrendsTexts.resourcesOf(item.version ?? '–', item.resources),
    tone: 'accent' as const,
  }));
  return (
    <PointChart
      title={stackTrendsTexts.resourcesByVersion}
      total={stackTrendsTexts.nowOf(last.resources)}
      points={points}
      ends={[stackTrendsTexts.version(known[0]?.version ?? '–'), stackTrendsTexts.version(last.version ?? '–')]}
      format={(value) => value.toLocaleString(numberLocale)}
      hasLine
    />
  );
}

function UpdateLink({ item, stack }: { readonly stack: StackRef; readonly item: UpdateTrend }) {
  return item.version === null ? (
    nameOf(item)
  ) : (
    <Link to="/$organization/$project/$stack/updates/$version" params={{ ...stack, version: String(item.version) }}>
      {nameOf(item)}
    </Link>
  );
}

function Outliers({ items, stack }: { readonly stack: StackRef; readonly items: readonly UpdateTrend[] }) {
  const found = findOutliers(items);
  if (found === null || found.outliers.length === 0) return null;
  const [low, high] = found.usual.map(duration);
  return (
    <Section title={stackTrendsTexts.unusuallyLongTitle} lead={stackTrendsTexts.halfTook(low, high)}>
      <ul className={styles['outliers']}>
        {found.outliers.slice(0, maxNamed).map((item) => (
          <li key={item.endedAt}>
            {stackTrendsTexts.took(
              <UpdateLink stack={stack} item={item} />,
              duration(item.seconds),
              <Time at={item.endedAt} />,
            )}
          </li>
        ))}
      </ul>
    </Section>
  );
}

function UpdateTable({ items, stack }: { readonly stack: StackRef; readonly items: readonly UpdateTrend[] }) {
  const outliers = findOutliers(items)?.outliers ?? [];
  const columns: readonly Column<UpdateTrend>[] = [
    { name: stackTrendsTexts.update, isTitle: true, cell: (item) => <UpdateLink stack={stack} item={item} /> },
    { name: stackTrendsTexts.status, cell: ({ status }) => viewStatus(status).word },
    {
      name: stackTrendsTexts.duration,
      align: 'right',
      cell: (item) => stackTrendsTexts.durationOf(duration(item.seconds), outliers.includes(item)),
    },
    {
      name: stackTrendsTexts.timeInQueue,
      align: 'right',
      cell: ({ waitedSeconds }) => (waitedSeconds === 0 ? '–' : duration(waitedSeconds)),
    },
    {
      name: stackTrendsTexts.resources,
      align: 'right',
      cell: ({ resources }) => resources?.toLocaleString(numberLocale) ?? '–',
    },
    { name: stackTrendsTexts.ended, align: 'right', cell: ({ endedAt }) => <Time at={endedAt} /> },
  ];
  return (
    <Table
      label={stackTrendsTexts.updates}
      columns={columns}
      items={items.toReversed()}
      keyOf={({ endedAt, version }) => `${version} ${endedAt}`}
      empty={null}
    />
  );
}

function linesOf(items: readonly UpdateTrend[]): (string | number)[][] {
  return [
    [...stackTrendsTexts.fileColumns],
    ...items.map(({ endedAt, kind, resources, seconds, status, version, waitedSeconds }) => [
      ...[version ?? '', kind, status, endedAt, seconds, waitedSeconds, resources ?? ''],
    ]),
  ];
}
