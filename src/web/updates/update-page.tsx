import { getRouteApi, Navigate } from '@tanstack/react-router';
import { useCopyAction } from '../platform/app/page-actions.ts';
import { usePageTitle } from '../platform/app/page-title.ts';
import { NotFoundPage, Problem, useProblem } from '../platform/app/problem-pages.tsx';
import type { StackRef } from '../platform/app/procedure-types.ts';
import { StackProblem } from '../platform/app/renamed-stack.tsx';
import { breadcrumbTexts, pageTexts } from '../platform/texts.tsx';
import { Tab, Tabs } from '../platform/ui/tabs.tsx';
import { ApprovalNotice } from './approvals/approval-notice.tsx';
import { EventList } from './event-list.tsx';
import { InterruptedNotice } from './interrupted-notice.tsx';
import { MessageList } from './message-list.tsx';
import { ProgressTree } from './progress-tree.tsx';
import { updateTexts } from './texts.tsx';
import { UpdateDetailsView } from './update-details.tsx';
import { UpdateHeader, UpdateHeaderSkeleton } from './update-header.tsx';
import styles from './update-page.module.css';
import type { UpdateSearch } from './update-search.ts';
import { useProgress } from './use-progress.ts';
import { type UpdateChoice, useUpdate } from './use-update.ts';
import { WaterfallChart } from './waterfall-chart.tsx';

const updateRoute = getRouteApi('/$organization/$project/$stack/updates/$version');
const previewRoute = getRouteApi('/$organization/$project/$stack/previews/$updateId');

export function UpdatePage() {
  const { version, ...stack } = updateRoute.useParams();
  const search = updateRoute.useSearch();
  if (!/^[1-9]\d{0,8}$/.test(version)) return <NotFoundPage />;
  return <UpdateOf stack={stack} choice={{ version: Number(version) }} search={search} />;
}

/** A preview has no number. The id of an update redirects to its page. */
export function PreviewPage() {
  const { updateId, ...stack } = previewRoute.useParams();
  const search = previewRoute.useSearch();
  const { data } = useUpdate(stack, { updateId });
  // An update has its own address.
  if (data && !data.dryRun && data.version !== null)
    return (
      <Navigate
        to="/$organization/$project/$stack/updates/$version"
        params={{ ...stack, version: String(data.version) }}
        search={search}
        replace
      />
    );
  return <UpdateOf stack={stack} choice={{ updateId }} search={search} />;
}

interface UpdateOfProps {
  readonly stack: StackRef;
  readonly choice: UpdateChoice;
  readonly search: UpdateSearch;
}

function UpdateOf({ choice, search, stack }: UpdateOfProps) {
  const query = useUpdate(stack, choice);
  const title = 'version' in choice ? breadcrumbTexts.update(String(choice.version)) : breadcrumbTexts.run;
  usePageTitle(pageTexts.pageOf(title, `${stack.project}/${stack.stack}`));
  const problem = useProblem(query);
  if (problem) return <StackProblem stack={stack} {...problem} />;
  if (query.data === undefined) return <UpdateHeaderSkeleton />;
  return <LoadedUpdate stack={stack} search={search} update={query.data} />;
}

function LoadedUpdate({
  search,
  stack,
  update,
}: Omit<UpdateOfProps, 'choice'> & { readonly update: NonNullable<ReturnType<typeof useUpdate>['data']> }) {
  useCopyAction(stack);
  const live = useProgress(stack, update);
  const { progress } = live.feed;
  const view = search.view ?? 'progress';
  const tab = (name: typeof view) => ({
    ...{
      to: '.' as const,
      search: { view: name === 'progress' ? undefined : name },
      isChosen: view === name,
      replace: true,
    },
  });
  const messageCount =
    progress.diagnosticCounts.error + progress.diagnosticCounts.warning + progress.diagnosticCounts.info;
  return (
    <article className={styles['page']}>
      <UpdateHeader stack={stack} update={update} progress={progress} revision={live.revision} />
      <InterruptedNotice stack={stack} update={update} />
      {update.dryRun && update.commit !== null ? <ApprovalNotice stack={stack} commit={update.commit} /> : null}
      <Tabs label={updateTexts.views}>
        <Tab {...tab('progress')}>{updateTexts.progress}</Tab>
        <Tab {...tab('messages')} count={messageCount === 0 ? undefined : messageCount}>
          {updateTexts.messages}
        </Tab>
        <Tab {...tab('timing')}>{updateTexts.timing}</Tab>
        <Tab {...tab('events')}>{updateTexts.events}</Tab>
        <Tab {...tab('details')}>{updateTexts.details}</Tab>
      </Tabs>
      {view === 'progress' || view === 'messages' || view === 'timing' ? (
        <>
          {live.error === null ? null : <Problem error={live.error} onRetry={live.retry} />}
          {live.error !== null && progress.rows.size === 0 ? null : view === 'progress' ? (
            <ProgressTree stack={stack} live={live} update={update} search={search} />
          ) : view === 'messages' ? (
            <MessageList live={live} update={update} search={search} />
          ) : (
            <WaterfallChart live={live} stack={stack} update={update} />
          )}
        </>
      ) : null}
      {view === 'events' ? <EventList stack={stack} update={update} search={search} /> : null}
      {view === 'details' ? <UpdateDetailsView stack={stack} update={update} /> : null}
    </article>
  );
}
