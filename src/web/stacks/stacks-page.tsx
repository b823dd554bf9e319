import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { Navigate, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { SearchX } from 'lucide-react';
import { useEffect, useMemo, useState } from 'react';
import { errorCode } from '../platform/app/api-error.ts';
import { useMe } from '../platform/app/me.ts';
import { NotFoundPage, Problem, useProblem } from '../platform/app/problem-pages.tsx';
import { every, trpc } from '../platform/app/trpc.ts';
import { pageTexts } from '../platform/texts.tsx';
import { Button } from '../platform/ui/button.tsx';
import { lazyPart } from '../platform/ui/chunks.tsx';
import { Empty } from '../platform/ui/empty.tsx';
import { numberLocale } from '../platform/ui/locale.ts';
import { PrintNote } from '../platform/ui/print-note.tsx';
import { useFirstStack, useFirstToken } from './first-stack.ts';
import { NextSteps, useNextSteps } from './next-steps.tsx';
import { chosenColumns } from './stack-columns.ts';
import { toQuery } from './stack-filter.ts';
import { StackFilterBar } from './stack-filter-bar.tsx';
import { StackTable, StackTableSkeleton } from './stack-table.tsx';
import styles from './stacks-page.module.css';
import { stacksTexts } from './texts.tsx';

const FirstSteps = lazyPart(async () => {
  // It replaces the steps immediately: the token is shown only once, and is the draft that keeps the page open.
  FirstTokenNotice.preload();
  return (await import('./first-steps.tsx')).FirstSteps;
});
const FirstStackNotice = lazyPart(async () => (await import('./first-steps.tsx')).FirstStackNotice);
const FirstTokenNotice = lazyPart(async () => (await import('./first-steps.tsx')).FirstTokenNotice);

const pageSize = 100;
/** Longer lists are refreshed only when the user returns to them. */
const maxRefreshedPages = 2;
const refreshMs = 15_000;
/** Interval while a user waits for the first stack. */
const firstRefreshMs = 2_000;

/** Null: the list is not reloaded automatically. */
function pauseOf(isFiltered: boolean, pages: readonly { readonly items: readonly unknown[] }[] = []): number | null {
  if (!isFiltered && pages.length === 1 && pages[0]?.items.length === 0) return firstRefreshMs;
  return pages.length <= maxRefreshedPages ? refreshMs : null;
}

/** The list of stacks: of all organizations, or of the one in the path. */
export function StacksPage() {
  const { organization } = useParams({ strict: false });
  const search = useSearch({ strict: false });
  const navigate = useNavigate();
  const isFiltered = Object.entries(search).some(([name, value]) => name !== 'columns' && value !== undefined);
  const query = useInfiniteQuery(
    trpc.stacks.list.infiniteQueryOptions(
      { ...toQuery(search, organization), limit: pageSize },
      {
        getNextPageParam: ({ next }) => next,
        placeholderData: keepPreviousData,
        refetchInterval: ({ state }) => every(pauseOf(isFiltered, state.data?.pages))({ state }),
        refetchOnWindowFocus: ({ state }) => (state.data?.pages.length ?? 0) <= maxRefreshedPages,
      },
    ),
  );
  useEffect(() => {
    document.title = pageTexts.tabTitle(organization ?? pageTexts.stacks);
  }, [organization]);
  const problem = useProblem(query);
  const me = useMe();
  const hasSeveral = (me?.organizations.length ?? 0) > 1;
  const items = useMemo(() => query.data?.pages.flatMap((page) => page.items) ?? [], [query.data]);
  const columns = useMemo(() => chosenColumns(search.columns), [search.columns]);
  const steps = useNextSteps(organization);
  const isListed = items.length > 0 && !query.isPlaceholderData;
  const areStepsAbove = useIsAbove(organization, isListed, steps !== null);
  const greeting = useFirstStack(query.isSuccess && !isFiltered && !query.isPlaceholderData ? items : null);
  const firstToken = useFirstToken();
  const areFirstSteps = !problem && !query.isPending && items.length === 0 && !isFiltered;
  const clear = () => void navigate({ to: '.', search: {} });
  // `pulumi whoami` prints the user's own page: all stacks that the user may see.
  if (me !== undefined && me.login === organization && me.organizations.every(({ name }) => name !== organization))
    return <Navigate to="/" replace />;
  // The organization does not exist, or the user is not a member.
  if (problem && errorCode(problem.error) === 'NOT_FOUND') return <NotFoundPage />;
  const nextSteps =
    organization === undefined || items.length === 0 || steps === null ? null : (
      <NextSteps organization={organization} items={steps} />
    );
  return (
    <div className={styles['page']}>
      <header className={styles['head']}>
        <h1>{organization ?? stacksTexts.stacks}</h1>
        <StackCount
          organization={organization}
          listed={isListed && !isFiltered && !query.hasNextPage ? items.length : null}
        />
      </header>
      <StackFilterBar items={items} />
      {greeting === null ? null : <FirstStackNotice stack={greeting} />}
      {areFirstSteps || firstToken.data === undefined ? null : <FirstTokenNotice token={firstToken} />}
      {nextSteps !== null && areStepsAbove === true ? nextSteps : null}
      {problem ? (
        <Problem {...problem} />
      ) : query.isPending ? (
        <StackTableSkeleton />
      ) : items.length > 0 ? (
        <>
          <StackTable
            items={items}
            isBusy={query.isPlaceholderData}
            hasMore={query.hasNextPage}
            onMore={() => (query.isFetching || query.isError ? undefined : void query.fetchNextPage())}
            columns={columns}
            showsOrganization={organization === undefined && hasSeveral}
          />
          <PrintNote count={items.length} hasMore={query.hasNextPage}>
            {stacksTexts.wholeList}
          </PrintNote>
        </>
      ) : isFiltered ? (
        <Empty title={stacksTexts.noMatch} icon={<SearchX size={20} />}>
          <p>{stacksTexts.noMatchHint(<code>owner:ada</code>, <code>updated:&lt;7d</code>)}</p>
          <p>
            <Button onClick={clear}>{stacksTexts.showAll}</Button>
          </p>
        </Empty>
      ) : (
        <FirstSteps organization={organization} token={firstToken} />
      )}
      {nextSteps !== null && areStepsAbove === false ? nextSteps : null}
    </div>
  );
}

/** If an item appeared above the list later, it would move the list. Null: no list has been shown. */
function useIsAbove(organization: string | undefined, isListed: boolean, isKnown: boolean): boolean | null {
  const [shown, setShown] = useState<{ organization: string | undefined; isAbove: boolean } | null>(null);
  if (shown !== null && shown.organization === organization) return shown.isAbove;
  if (isListed) setShown({ organization, isAbove: isKnown });
  return null;
}

/**
 * The number of stacks, if the user may see all of them; if there are many, a minimum. `listed`: the number in a complete list, which is
 * newer.
 */
function StackCount({
  listed,
  organization,
}: {
  readonly organization: string | undefined;
  readonly listed: number | null;
}) {
  const organizations = useMe()?.organizations.filter(
    ({ name }) => organization === undefined || name === organization,
  );
  const counts = organizations?.map(({ stackCount }) => stackCount) ?? [];
  if (counts.length === 0 || counts.includes(null)) return null;
  const count = listed ?? counts.reduce<number>((sum, each) => sum + (each ?? 0), 0);
  const hasMore = listed === null && (organizations?.some(({ hasMoreStacks }) => hasMoreStacks) ?? false);
  return (
    <span className={styles['count']}>
      {count.toLocaleString(numberLocale)}
      {hasMore ? '+' : ''}
    </span>
  );
}
