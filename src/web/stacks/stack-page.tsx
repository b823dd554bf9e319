import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { Star } from 'lucide-react';
import { useRef } from 'react';
import { isGone } from '../platform/app/api-error.ts';
import { useLive } from '../platform/app/live.ts';
import { useMe } from '../platform/app/me.ts';
import { useCopyAction } from '../platform/app/page-actions.ts';
import { usePageTitle } from '../platform/app/page-title.ts';
import { useProblem } from '../platform/app/problem-pages.tsx';
import type { StackDetails, StackRef } from '../platform/app/procedure-types.ts';
import { StackProblem } from '../platform/app/renamed-stack.tsx';
import { reread } from '../platform/app/reread.ts';
import { every, queryClient, trpc } from '../platform/app/trpc.ts';
import { Badge } from '../platform/ui/badge.tsx';
import { Button } from '../platform/ui/button.tsx';
import { lazyPart } from '../platform/ui/chunks.tsx';
import { numberLocale } from '../platform/ui/locale.ts';
import { Skeleton } from '../platform/ui/skeleton.tsx';
import { Tab, Tabs } from '../platform/ui/tabs.tsx';
import { Time } from '../platform/ui/time.tsx';
import { ResourceList } from '../state/resources/resource-list.tsx';
import { VersionList } from '../state/versions/version-list.tsx';
import { useAskedApprovals } from '../updates/approvals/approval-notice.tsx';
import { AskButton } from '../updates/approvals/ask-approval.tsx';
import { ConfigTable } from '../updates/config-table.tsx';
import { PendingNotice } from '../updates/interrupted-notice.tsx';
import { UpdateList } from '../updates/update-list.tsx';
import { WatchButton } from '../updates/watch/watch-button.tsx';
import { toggleFavorite, useIsFavorite } from './favorites.ts';
import { FreezeButton } from './freeze-notice.tsx';
import { LockNotice } from './lock-notice.tsx';
import { PendingRepair } from './pending-repair.tsx';
import { stackPageTexts } from './stack/texts.tsx';
import { StackOverview } from './stack-overview.tsx';
import styles from './stack-page.module.css';

const StackAccess = lazyPart(async () => (await import('./stack-access.tsx')).StackAccess);

const StackTrends = lazyPart(async () => (await import('../updates/trends/stack-trends.tsx')).StackTrends);

const StackWebhooks = lazyPart(async () => (await import('./stack-webhooks.tsx')).StackWebhooks);

const route = getRouteApi('/$organization/$project/$stack');
const busyPollMs = 2_000;
const idlePollMs = 15_000;
const livePollMs = 60_000;

/** The data that a notification may have changed. The state, which is large, changes neither in the queue nor when an update begins. */
function shownAfter(kind: string) {
  const ofQueue = [trpc.stacks.get, trpc.queue.list];
  if (kind === 'queue.changed') return ofQueue;
  const ofUpdates = [...ofQueue, trpc.stacks.pending, trpc.updates.list];
  if (kind === 'update.created' || kind === 'update.started') return ofUpdates;
  return [...ofUpdates, trpc.updates.trend, trpc.resources, trpc.versions.list];
}

export function StackPage() {
  const { organization, project, stack: name } = route.useParams();
  const stack = { organization, project, stack: name };
  const search = route.useSearch();
  usePageTitle(`${project}/${name}`);
  const isLive = useRef(false);
  const query = useQuery(
    trpc.stacks.get.queryOptions(stack, {
      refetchInterval: ({ state }) =>
        every(isLive.current ? livePollMs : isBusy(state.data) ? busyPollMs : idlePollMs)({ state }),
    }),
  );
  // A stream with the topic of a deleted stack would be refused, with all other topics of this tab.
  const isThere = query.data !== undefined && !isGone(query.error);
  isLive.current = useLive(isThere ? `stack:${organization}/${project}/${name}` : null, ({ kind }) => {
    for (const shown of shownAfter(kind)) void reread(queryClient, shown.pathKey());
  });
  // Loaded together with the stack, so that the page does not shift later; the page does not wait for retries.
  const approvals = useAskedApprovals(stack);
  const tab = search.tab ?? 'overview';
  const linkTo = (target: typeof tab) => ({
    ...{ to: '.' as const, search: { tab: target === 'overview' ? undefined : target }, isChosen: tab === target },
  });
  const problem = useProblem(query);
  if (problem) return <StackProblem stack={stack} {...problem} />;
  const details = query.data;
  if (details === undefined || (approvals.isPending && approvals.failureCount === 0 && query.error === null))
    return <StackSkeleton stack={stack} />;
  const { pendingCount } = details;
  return (
    <article className={styles['page']}>
      <StackHeader stack={stack} details={details} />
      <LockNotice stack={stack} details={details} />
      {pendingCount === 0 || tab === 'interrupted' ? null : (
        <PendingNotice stack={stack} count={pendingCount}>
          <p>{stackPageTexts.interruptedLead}</p>
        </PendingNotice>
      )}
      <Tabs label={stackPageTexts.views}>
        <Tab {...linkTo('overview')}>{stackPageTexts.overview}</Tab>
        <Tab {...linkTo('updates')}>{stackPageTexts.updates}</Tab>
        <Tab {...linkTo('trends')}>{stackPageTexts.trends}</Tab>
        <Tab {...linkTo('resources')} count={details.resourceCount || undefined}>
          {stackPageTexts.resources}
        </Tab>
        <Tab {...linkTo('versions')}>{stackPageTexts.versions}</Tab>
        <Tab {...linkTo('configuration')} count={details.config?.length || undefined}>
          {stackPageTexts.configuration}
        </Tab>
        <Tab {...linkTo('access')}>{stackPageTexts.access}</Tab>
        {details.permissions.includes('admin') ? <Tab {...linkTo('webhooks')}>{stackPageTexts.webhooks}</Tab> : null}
        {pendingCount === 0 && tab !== 'interrupted' ? null : (
          <Tab {...linkTo('interrupted')} count={pendingCount || undefined}>
            {stackPageTexts.interrupted}
          </Tab>
        )}
      </Tabs>
      {tab === 'overview' ? <StackOverview stack={stack} details={details} /> : null}
      {tab === 'updates' ? <UpdateList stack={stack} search={search} isBusy={isBusy(details)} /> : null}
      {tab === 'trends' ? <StackTrends stack={stack} /> : null}
      {tab === 'resources' ? <ResourceList stack={stack} search={search} /> : null}
      {tab === 'versions' ? (
        <VersionList key={details.createdAt} stack={stack} details={details} search={search} />
      ) : null}
      {tab === 'interrupted' ? <PendingRepair stack={stack} details={details} /> : null}
      {tab === 'configuration' ? (
        <section className={styles['config']}>
          <p className={styles['hint']}>{stackPageTexts.configurationLead}</p>
          <ConfigTable stack={stack} config={details.config} empty={stackPageTexts.noConfiguration} />
        </section>
      ) : null}
      {tab === 'webhooks' ? <StackWebhooks stack={stack} search={search} /> : null}
      {tab === 'access' ? <StackAccess stack={stack} details={details} /> : null}
    </article>
  );
}

function isBusy(details: StackDetails | undefined): boolean {
  return details !== undefined && (details.active !== null || details.waiting > 0);
}

function StackHeader({ details, stack }: { readonly stack: StackRef; readonly details: StackDetails }) {
  const login = useMe()?.login;
  const isFavorite = useIsFavorite(login, stack);
  useCopyAction(stack);
  const label = isFavorite ? stackPageTexts.removeFavorite : stackPageTexts.addFavorite;
  return (
    <header className={styles['header']}>
      <div className={styles['title']}>
        <h1>
          <span className={styles['project']}>{stack.project}/</span>
          {stack.stack}
        </h1>
        <Button
          kind="quiet"
          size="icon"
          className={isFavorite ? styles['favorite'] : undefined}
          aria-label={label}
          aria-pressed={isFavorite}
          title={label}
          onClick={() => toggleFavorite(login, stack)}
        >
          <Star size={17} fill={isFavorite ? 'currentColor' : 'none'} />
        </Button>
        <WatchButton stack={stack} />
        {details.drift === 'drifted' ? <Badge tone="warning">{stackPageTexts.drifted}</Badge> : null}
        {details.frozen === null ? null : <Badge tone="running">{stackPageTexts.frozen}</Badge>}
        <div className={styles['actions']}>
          <AskButton stack={stack} details={details} />
          <FreezeButton stack={stack} details={details} />
        </div>
      </div>
      <p className={styles['meta']}>
        {details.version === 0 ? stackPageTexts.neverUpdated : stackPageTexts.version(<b>{details.version}</b>)}
        {details.resourceCount === null
          ? null
          : stackPageTexts.resourceCount(
              <b>{details.resourceCount.toLocaleString(numberLocale)}</b>,
              details.resourceCount,
            )}
        {stackPageTexts.changed(<Time at={details.updatedAt} />)}
      </p>
    </header>
  );
}

function StackSkeleton({ stack }: { readonly stack: StackRef }) {
  return (
    <article className={styles['page']} aria-busy="true">
      <header className={styles['header']}>
        <h1>
          <span className={styles['project']}>{stack.project}/</span>
          {stack.stack}
        </h1>
        <Skeleton width={280} />
      </header>
      <div className={styles['skeletonTabs']}>
        <Skeleton width={64} />
        <Skeleton width={58} />
        <Skeleton width={96} />
      </div>
      <div className={styles['skeletonRows']}>
        {[64, 48, 71, 40].map((width) => (
          <Skeleton key={width} width={`${width}%`} />
        ))}
      </div>
    </article>
  );
}
