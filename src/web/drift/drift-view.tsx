import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { CircleCheck, Waves } from 'lucide-react';
import type { CiDays } from '../platform/app/ci-search.ts';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import type { CiDrift } from '../platform/app/procedure-types.ts';
import { stackColumn } from '../platform/app/stack-link.tsx';
import { every, trpc } from '../platform/app/trpc.ts';
import { Badge } from '../platform/ui/badge.tsx';
import { Code } from '../platform/ui/code.tsx';
import { Empty } from '../platform/ui/empty.tsx';
import { numberLocale } from '../platform/ui/locale.ts';
import { pagedList } from '../platform/ui/paged-list.ts';
import { type Column, Table } from '../platform/ui/table.tsx';
import { Time } from '../platform/ui/time.tsx';
import { driftTexts } from './texts.ts';

const refreshMs = 60_000;

export function DriftView({ days, organization }: { readonly organization: string; readonly days: CiDays }) {
  const query = useInfiniteQuery(
    trpc.ci.drift.infiniteQueryOptions(
      { organization, days },
      { getNextPageParam: ({ next }) => next, placeholderData: keepPreviousData, refetchInterval: every(refreshMs) },
    ),
  );
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  return (
    <Table
      label={driftTexts.label}
      columns={columns(organization)}
      {...pagedList(query)}
      keyOf={({ stackId }) => stackId}
      empty={
        <Empty title={driftTexts.noDriftFound} icon={<Waves size={20} />}>
          <p>{driftTexts.refreshCompares}</p>
          <Code>pulumi refresh --preview-only --non-interactive</Code>
        </Empty>
      }
    />
  );
}

function columns(organization: string): readonly Column<CiDrift>[] {
  return [
    stackColumn(organization),
    {
      name: driftTexts.state,
      cell: ({ cleanAt }) =>
        cleanAt === null ? (
          <Badge tone="warning" icon={<Waves aria-hidden="true" />}>
            {driftTexts.drifted}
          </Badge>
        ) : (
          <Badge tone="success" icon={<CircleCheck aria-hidden="true" />}>
            {driftTexts.inSyncAgain}
          </Badge>
        ),
    },
    {
      name: driftTexts.differences,
      align: 'right',
      cell: ({ differences }) => differences.toLocaleString(numberLocale),
    },
    { name: driftTexts.since, align: 'right', cell: ({ since }) => <Time at={since} /> },
    {
      name: driftTexts.lastFound,
      align: 'right',
      cell: ({ foundAt, project, stack, updateId }) => (
        <Link
          to="/$organization/$project/$stack/previews/$updateId"
          params={{ organization, project, stack, updateId }}
        >
          <Time at={foundAt} />
        </Link>
      ),
    },
    {
      name: driftTexts.inSync,
      align: 'right',
      cell: ({ cleanAt, cleanUpdateId, project, stack }) =>
        cleanAt === null || cleanUpdateId === null ? (
          '–'
        ) : (
          <Link
            to="/$organization/$project/$stack/previews/$updateId"
            params={{ organization, project, stack, updateId: cleanUpdateId }}
          >
            <Time at={cleanAt} />
          </Link>
        ),
    },
  ];
}
