import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { GitBranch, GitCommitHorizontal } from 'lucide-react';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import type { StackRef, UpdateItem } from '../platform/app/procedure-types.ts';
import type { StackPageSearch } from '../platform/app/stack-search.ts';
import { every, trpc } from '../platform/app/trpc.ts';
import { Button } from '../platform/ui/button.tsx';
import { Code } from '../platform/ui/code.tsx';
import { Empty } from '../platform/ui/empty.tsx';
import { ListToggle } from '../platform/ui/list-bar.tsx';
import { duration } from '../platform/ui/relative-time.ts';
import { Skeleton } from '../platform/ui/skeleton.tsx';
import { Since, Time } from '../platform/ui/time.tsx';
import { ChangeBar } from './change-bar.tsx';
import { CommitLink } from './commit-link.tsx';
import { StatusIcon } from './status-badge.tsx';
import { updateListTexts } from './texts.tsx';
import styles from './update-list.module.css';
import { isActive, viewKind } from './update-status.ts';

const pageSize = 50;
const latestCount = 5;
const busyPollMs = 3_000;
const idlePollMs = 30_000;

interface UpdateListProps {
  readonly stack: StackRef;
  readonly search: StackPageSearch;
  readonly isBusy: boolean;
}

/** The history of a stack, the newest first. */
export function UpdateList({ isBusy, search, stack }: UpdateListProps) {
  const navigate = useNavigate();
  const { organization, project, stack: name } = stack;
  const query = useInfiniteQuery(
    trpc.updates.list.infiniteQueryOptions(
      { organization, project, stack: name, limit: pageSize, previews: search.previews === '1' },
      { getNextPageParam: (page) => page.next, refetchInterval: every(isBusy ? busyPollMs : idlePollMs) },
    ),
  );
  const problem = useProblem(query);
  const updates = (!problem && query.data?.pages.flatMap(({ items }) => items)) || [];
  return (
    <section className={styles['section']} aria-label={updateListTexts.updates}>
      <ListToggle
        isOn={search.previews === '1'}
        onChange={(isOn) =>
          void navigate({
            to: '.',
            search: { ...search, previews: isOn ? '1' : undefined },
            replace: true,
            resetScroll: false,
          })
        }
      >
        {updateListTexts.showPreviews}
      </ListToggle>
      {problem ? <Problem {...problem} /> : query.isPending ? <ListSkeleton /> : null}
      {query.isSuccess && updates.length === 0 ? (
        <Empty title={updateListTexts.noUpdatesYet}>
          <p>{updateListTexts.noUpdatesHint}</p>
          <Code>{`pulumi up --stack ${organization}/${project}/${name}`}</Code>
        </Empty>
      ) : null}
      <Rows stack={stack} updates={updates} />
      {query.hasNextPage && !problem ? (
        <Button
          className={styles['more']}
          disabled={query.isFetchingNextPage}
          onClick={() => void query.fetchNextPage()}
        >
          {query.isFetchingNextPage ? updateListTexts.loading : updateListTexts.olderUpdates}
        </Button>
      ) : null}
    </section>
  );
}

export function LatestUpdates({ isBusy, stack }: Omit<UpdateListProps, 'search'>) {
  const { organization, project, stack: name } = stack;
  const query = useQuery(
    trpc.updates.list.queryOptions(
      { organization, project, stack: name, limit: latestCount },
      { refetchInterval: every(isBusy ? busyPollMs : idlePollMs) },
    ),
  );
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  if (query.data === undefined) return <ListSkeleton />;
  if (query.data.items.length === 0) return <p className={styles['none']}>{updateListTexts.noUpdates}</p>;
  return <Rows stack={stack} updates={query.data.items} />;
}

function Rows({ stack, updates }: { readonly stack: StackRef; readonly updates: readonly UpdateItem[] }) {
  if (updates.length === 0) return null;
  return (
    <ol className={styles['rows']}>
      {updates.map((update) => (
        <li key={update.updateId} className={styles['row']}>
          <Row stack={stack} update={update} />
        </li>
      ))}
    </ol>
  );
}

function Row({ stack, update }: { readonly stack: StackRef; readonly update: UpdateItem }) {
  const title = `${viewKind(update)}${update.version === null || update.dryRun ? '' : ` ${update.version}`}`;
  const { commit, branch } = update;
  return (
    <>
      <StatusIcon status={update.status} />
      <span className={styles['what']}>
        {update.version === null || update.dryRun ? (
          <Link
            to="/$organization/$project/$stack/previews/$updateId"
            params={{ ...stack, updateId: update.updateId }}
            className={styles['link']}
          >
            {title}
          </Link>
        ) : (
          <Link
            to="/$organization/$project/$stack/updates/$version"
            params={{ ...stack, version: String(update.version) }}
            className={styles['link']}
          >
            {title}
          </Link>
        )}
        <span className={styles['message']}>{update.message}</span>
      </span>
      <span className={styles['changes']}>
        <ChangeBar changes={update.changes} />
      </span>
      <span className={styles['source']}>
        {commit !== null ? (
          <>
            <GitCommitHorizontal size={13} aria-hidden="true" />
            <CommitLink commit={commit} stack={stack} />
          </>
        ) : branch !== null ? (
          <>
            <GitBranch size={13} aria-hidden="true" />
            <code>{branch}</code>
          </>
        ) : null}
      </span>
      <span className={styles['by']}>{update.by}</span>
      <span className={styles['when']}>
        {update.startedAt === null ? updateListTexts.waiting : <Time at={update.startedAt} />}
        <span className={styles['took']}>
          <Took update={update} />
        </span>
      </span>
    </>
  );
}

function Took({ update }: { readonly update: UpdateItem }) {
  if (update.startedAt === null) return null;
  if (isActive(update)) return <Since at={update.startedAt} />;
  if (update.endedAt === null) return null;
  return duration((Date.parse(update.endedAt) - Date.parse(update.startedAt)) / 1000);
}

function ListSkeleton() {
  return (
    <div className={styles['skeleton']} aria-busy="true">
      {[58, 46, 62, 40, 53].map((width) => (
        <Skeleton key={width} width={`${width}%`} />
      ))}
    </div>
  );
}
