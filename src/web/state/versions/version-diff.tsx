import { useInfiniteQuery } from '@tanstack/react-query';
import { ofVersions } from '../../platform/app/of-versions.ts';
import { Problem, useProblem } from '../../platform/app/problem-pages.tsx';
import type { StackRef } from '../../platform/app/procedure-types.ts';
import { stopsUnread, trpc } from '../../platform/app/trpc.ts';
import { Button } from '../../platform/ui/button.tsx';
import { Skeleton } from '../../platform/ui/skeleton.tsx';
import { differenceTexts } from '../texts.tsx';
import { Differences } from './differences.tsx';
import styles from './version-diff.module.css';

const pageSize = 50;

/** Resources that differ between two versions, with their properties. */
export function VersionDiff({
  from,
  idOf,
  stack,
  to,
}: {
  /** Distinguishes a version from another one with the same number. */
  readonly idOf: (version: number) => string;
  readonly stack: StackRef;
  readonly from: number;
  readonly to: number;
}) {
  const { organization, project, stack: name } = stack;
  const query = useInfiniteQuery(
    trpc.versions.diff.infiniteQueryOptions(
      { organization, project, stack: name, from, to, limit: pageSize },
      { ...stopsUnread, getNextPageParam: (page) => page.next, ...ofVersions(idOf(from), idOf(to)) },
    ),
  );
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  if (query.data === undefined) return <Skeleton width="50%" />;
  const items = query.data.pages.flatMap((page) => page.items);
  if (items.length === 0) return <p className={styles['none']}>{differenceTexts.none}</p>;
  return (
    <>
      <Differences items={items} />
      {query.hasNextPage ? (
        <Button disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
          {differenceTexts.more}
        </Button>
      ) : null}
    </>
  );
}
