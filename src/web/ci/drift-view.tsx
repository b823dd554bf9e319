import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { CircleCheck, Waves } from 'lucide-react';
import type { CiDrift } from '../app/contract.ts';
import { Problem } from '../app/problem-pages.tsx';
import { trpc } from '../app/trpc.ts';
import { Badge } from '../ui/badge.tsx';
import { Code } from '../ui/code.tsx';
import { Empty } from '../ui/empty.tsx';
import { type Column, Table } from '../ui/table.tsx';
import { Time } from '../ui/time.tsx';
import type { CiDays } from './ci-search.ts';

const refreshMs = 60_000;

/** Stacks that differ from what their programs say, and those that were brought back lately. */
export function DriftView({ days, organization }: { readonly organization: string; readonly days: CiDays }) {
  const query = useInfiniteQuery(
    trpc.ci.drift.infiniteQueryOptions(
      { organization, days },
      { getNextPageParam: ({ next }) => next, placeholderData: keepPreviousData, refetchInterval: refreshMs },
    ),
  );
  const items = query.data?.pages.flatMap((page) => page.items);
  if (items === undefined && query.error) return <Problem error={query.error} onRetry={() => void query.refetch()} />;
  return (
    <Table
      label="Stacks that have drifted"
      columns={columns(organization)}
      items={items}
      keyOf={({ stackId }) => stackId}
      hasMore={query.hasNextPage}
      isBusy={query.isFetchingNextPage || query.isPlaceholderData}
      onMore={() => void query.fetchNextPage()}
      empty={
        <Empty title="No drift was found" icon={<Waves size={20} />}>
          <p>A stack is compared with reality by any refresh, for example by a pipeline at night:</p>
          <Code>pulumi refresh --preview-only --non-interactive</Code>
        </Empty>
      }
    />
  );
}

function columns(organization: string): readonly Column<CiDrift>[] {
  return [
    {
      name: 'Stack',
      isTitle: true,
      cell: ({ project, stack }) => (
        <Link to="/$organization/$project/$stack" params={{ organization, project, stack }}>
          {project}/{stack}
        </Link>
      ),
    },
    {
      name: 'State',
      cell: ({ cleanAt }) =>
        cleanAt === null ? (
          <Badge tone="warning" icon={<Waves aria-hidden="true" />}>
            Drifted
          </Badge>
        ) : (
          <Badge tone="success" icon={<CircleCheck aria-hidden="true" />}>
            Clean again
          </Badge>
        ),
    },
    { name: 'Differences', align: 'right', cell: ({ differences }) => differences.toLocaleString() },
    { name: 'Since', align: 'right', cell: ({ since }) => <Time at={since} /> },
    {
      name: 'Last found',
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
      name: 'Clean',
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
