import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { History } from 'lucide-react';
import { useEffect, useMemo, useRef } from 'react';
import { useLive } from '../../platform/app/live.ts';
import { useMe } from '../../platform/app/me.ts';
import { useMayManage } from '../../platform/app/organization-pages.ts';
import { Problem, useProblem } from '../../platform/app/problem-pages.tsx';
import type { ActivityItem } from '../../platform/app/procedure-types.ts';
import styles from '../../platform/app/settings-page.module.css';
import { TextFilter } from '../../platform/app/text-filter.tsx';
import { every, queryClient, trpc } from '../../platform/app/trpc.ts';
import { ViewsButton } from '../../platform/app/views/views-button.tsx';
import { Badge } from '../../platform/ui/badge.tsx';
import { Button } from '../../platform/ui/button.tsx';
import { Empty } from '../../platform/ui/empty.tsx';
import { ExternalLink } from '../../platform/ui/external-link.tsx';
import { SelectField } from '../../platform/ui/field.tsx';
import { FilterBar, Page } from '../../platform/ui/page.tsx';
import { pagedList } from '../../platform/ui/paged-list.ts';
import { type Column, Table } from '../../platform/ui/table.tsx';
import { Time } from '../../platform/ui/time.tsx';
import { shortCommit, viewKind, viewStatus } from '../../updates/update-status.ts';
import { activityTexts } from '../texts.ts';
import { type ActivityKind, type ActivitySearch, parseActivitySearch, toActivityQuery } from './activity-search.ts';
import { noteSeen, readLastSeen } from './last-seen.ts';

const route = getRouteApi('/$organization/~/activity');
/** Intervals with and without the stream. */
const refreshMs = { live: 60_000, alone: 15_000 } as const;
/** Many runs may start and end at once, so the list is refreshed at this interval. */
const settleMs = 1_000;
/** Longer lists are reloaded only when the user returns to them. */
const maxRefreshedPages = 2;

export function ActivityPage() {
  const { organization } = route.useParams();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  // As of the opening of the page.
  const login = useMe()?.login;
  const seen = useMemo(() => (login === undefined ? null : readLastSeen(login, organization)), [login, organization]);
  const options = trpc.activity.list.infiniteQueryOptions(
    { organization, ...toActivityQuery(search) },
    { getNextPageParam: ({ next }) => next, placeholderData: keepPreviousData },
  );
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const isLive = useLive(`organization:${organization}`, () => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      const shown = queryClient.getQueryData(options.queryKey);
      if ((shown?.pages.length ?? 0) <= maxRefreshedPages)
        void queryClient.invalidateQueries({ queryKey: trpc.activity.list.pathKey() });
    }, settleMs);
  });
  const query = useInfiniteQuery({
    ...options,
    refetchInterval: ({ state }) =>
      every((state.data?.pages.length ?? 0) > maxRefreshedPages ? null : isLive ? refreshMs.live : refreshMs.alone)({
        state,
      }),
  });
  const isFiltered = Object.values(search).some((value) => value !== undefined);
  // A filtered list does not show all new events, and neither does the list of the previous organization.
  const newest = isFiltered || query.isPlaceholderData ? undefined : query.data?.pages[0]?.items[0]?.at;
  useEffect(() => {
    document.title = activityTexts.documentTitle(organization);
  }, [organization]);
  useEffect(() => {
    if (newest === undefined || login === undefined) return;
    if (!(newest < (readLastSeen(login, organization) ?? ''))) noteSeen(login, organization, newest);
  }, [login, newest, organization]);
  const problem = useProblem(query);
  return (
    <Page title={activityTexts.title} actions={<ViewsButton page="activity" search={parseActivitySearch(search)} />}>
      <Filters
        organization={organization}
        search={search}
        onChange={(change) => void navigate({ search: (before) => ({ ...before, ...change }), replace: true })}
      />
      {problem ? (
        <Problem {...problem} />
      ) : (
        <Table
          label={activityTexts.title}
          columns={columnsOf(organization, seen)}
          {...pagedList(query)}
          keyOf={({ number }) => String(number)}
          empty={
            <Empty
              title={
                query.hasNextPage
                  ? activityTexts.nothingFoundYet
                  : isFiltered
                    ? activityTexts.nothingMatches
                    : activityTexts.noActivityYet
              }
              icon={<History size={20} />}
            >
              {query.hasNextPage ? (
                <>
                  <p>{activityTexts.onlyOlderEvents}</p>
                  <p>
                    <Button disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
                      {query.isFetchingNextPage ? activityTexts.searching : activityTexts.lookFurtherBack}
                    </Button>
                  </p>
                </>
              ) : (
                <p>{activityTexts.emptyHint}</p>
              )}
            </Empty>
          }
        />
      )}
    </Page>
  );
}

const kindNames: Readonly<Record<ActivityKind, string>> = activityTexts.kindNames;

function Filters({
  onChange,
  organization,
  search: { kind, stack, who },
}: {
  readonly organization: string;
  readonly search: ActivitySearch;
  readonly onChange: (change: ActivitySearch) => void;
}) {
  const mayManage = useMayManage(organization);
  const isOffered = ([name]: readonly [ActivityKind, string]): boolean =>
    name !== 'freezes' || mayManage || name === kind;
  return (
    <FilterBar>
      <SelectField
        label={activityTexts.kind}
        value={kind ?? ''}
        options={[
          ['', activityTexts.any],
          ...(Object.entries(kindNames) as [ActivityKind, string][]).filter(isOffered),
        ]}
        onChange={({ target }) => onChange({ kind: (target.value || undefined) as ActivityKind | undefined })}
      />
      <div className={styles['filter']}>
        <TextFilter
          label={activityTexts.projectOrStack}
          value={stack}
          placeholder={activityTexts.stackPlaceholder}
          onChange={(value) => onChange({ stack: value })}
        />
      </div>
      <div className={styles['filter']}>
        <TextFilter
          label={activityTexts.who}
          organization={organization}
          value={who}
          placeholder={activityTexts.login}
          onChange={(value) => onChange({ who: value })}
        />
      </div>
    </FilterBar>
  );
}

function columnsOf(organization: string, seen: string | null): Column<ActivityItem>[] {
  return [
    {
      name: activityTexts.what,
      isTitle: true,
      cell: (item) => (
        <span className={styles['badges']}>
          <What organization={organization} item={item} />
          {seen !== null && item.at > seen ? <Badge tone="running">{activityTexts.new}</Badge> : null}
        </span>
      ),
    },
    {
      name: activityTexts.stack,
      cell: ({ scope, stack }) =>
        stack === null ? (
          <span className={styles['pattern']}>{scope}</span>
        ) : (
          <Link to="/$organization/$project/$stack" params={{ organization, ...stack }} className={styles['pattern']}>
            {stack.project}/{stack.stack}
          </Link>
        ),
    },
    {
      name: activityTexts.commit,
      cell: ({ update }) =>
        update === null ? null : (
          <span className={styles['badges']}>
            {update.commit === null ? null : <code title={update.commit}>{shortCommit(update.commit)}</code>}
            {update.ciUrl === null ? null : <ExternalLink href={update.ciUrl}>{activityTexts.ciRun}</ExternalLink>}
          </span>
        ),
    },
    { name: activityTexts.who, cell: ({ by, isPerson }) => (isPerson ? by : by.replace(/:$/, '')) },
    { name: activityTexts.when, align: 'right', cell: ({ at }) => <Time at={at} /> },
  ];
}

/** Events other than updates show their action. */
function What({ item, organization }: { readonly item: ActivityItem; readonly organization: string }) {
  const { action, description, stack, update } = item;
  if (update === null || stack === null) return <>{description}</>;
  const { dryRun, kind, status, updateId, version } = update;
  const isStart = action === 'update.start';
  const { tone, word } = viewStatus(status);
  return (
    <>
      <Link
        to="/$organization/$project/$stack/previews/$updateId"
        params={{ organization, ...stack, updateId }}
        title={update.message === '' ? undefined : update.message}
      >
        {isStart ? `${viewKind({ kind, dryRun })}${version === null ? '' : ` ${version}`}` : description}
      </Link>
      {isStart ? <Badge tone={tone}>{word}</Badge> : null}
    </>
  );
}
