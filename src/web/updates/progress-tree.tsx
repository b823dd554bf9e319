import { useNavigate } from '@tanstack/react-router';
import { useMemo } from 'react';
import { ListTextFilter } from '../platform/app/list-text-filter.tsx';
import type { StackRef, UpdateDetails } from '../platform/app/procedure-types.ts';
import { Empty } from '../platform/ui/empty.tsx';
import { ListSection, ListToggle } from '../platform/ui/list-bar.tsx';
import { Skeleton } from '../platform/ui/skeleton.tsx';
import { useToggles } from '../platform/ui/toggles.ts';
import { VirtualList } from '../platform/ui/virtual-list.tsx';
import { ErrorSummary } from './error-summary.tsx';
import { ProgressRow } from './progress-row.tsx';
import styles from './progress-tree.module.css';
import { RemovalSummary } from './removal-summary.tsx';
import { progressTreeTexts } from './texts.tsx';
import { listTreeRows, type TreeRow } from './tree-rows.ts';
import type { UpdateSearch } from './update-search.ts';
import { isActive } from './update-status.ts';
import { hasRead, type LiveProgress } from './use-progress.ts';
import { useNowSeconds } from './use-update.ts';

const rowPixels = 36;

interface ProgressTreeProps {
  readonly stack: StackRef;
  readonly live: LiveProgress;
  readonly update: UpdateDetails;
  readonly search: UpdateSearch;
}

/** Resources are listed below their parents. */
export function ProgressTree({ live, search, stack, update }: ProgressTreeProps) {
  const { feed, revision } = live;
  const { progress } = feed;
  const [collapsed, toggleCollapsed] = useToggles<string>();
  const [opened, toggleOpened] = useToggles<string>();
  const showUnchanged = search.all === '1';
  const text = search.text ?? '';
  // biome-ignore lint/correctness/useExhaustiveDependencies: the tree is changed in place; its revision says when.
  const rows = useMemo(
    () => listTreeRows(progress, { showUnchanged, text, collapsed }),
    [progress, revision, showUnchanged, text, collapsed],
  );
  const now = useNowSeconds(isActive(update) && progress.runningCount > 0);
  const isLoading = !hasRead(live, update) && progress.rows.size === 0 && live.error === null;
  // Errors and removals appear with the first rows: nothing is shown before, so that the layout does not shift.
  if (isLoading) return <TreeSkeleton />;
  return (
    <div className={styles['progress']}>
      <ErrorSummary stack={stack} update={update} progress={progress} revision={revision} />
      {update.dryRun ? <RemovalSummary feed={feed} update={update} revision={revision} /> : null}
      <ListSection
        label={progressTreeTexts.label}
        bar={<Filter search={search} />}
        facts={countText(progress.rows.size, rows.length, feed.isOver)}
      >
        {rows.length === 0 ? <NoRows search={search} update={update} /> : null}
        {rows.length > 0 ? (
          <VirtualList
            items={rows}
            keyOf={urnOf}
            label={progressTreeTexts.resources}
            rowPx={rowPixels}
            row={(tree) => (
              <ProgressRow
                tree={tree}
                isOpen={opened.has(tree.row.urn) !== (search.values === '1' && tree.row.diffs.length > 0)}
                isPreview={update.dryRun}
                isActive={isActive(update)}
                now={now}
                onCollapse={toggleCollapsed}
                onOpen={toggleOpened}
              />
            )}
          />
        ) : null}
      </ListSection>
    </div>
  );
}

function countText(count: number, shown: number, isWhole: boolean): string {
  const counted = progressTreeTexts.resourceCount(count);
  const all = isWhole ? counted : progressTreeTexts.soFar(counted);
  return count === shown ? all : progressTreeTexts.shownOf(shown, all);
}

function Filter({ search }: { readonly search: UpdateSearch }) {
  const navigate = useNavigate();
  const change = (changes: Partial<UpdateSearch>): void =>
    void navigate({ to: '.', search: (before) => ({ ...before, ...changes }), replace: true, resetScroll: false });
  return (
    <>
      <ListTextFilter
        label={progressTreeTexts.filterLabel}
        placeholder={progressTreeTexts.filter}
        value={search.text}
        onText={(text) => change({ text })}
      />
      <ListToggle isOn={search.all === '1'} onChange={(isOn) => change({ all: isOn ? '1' : undefined })}>
        {progressTreeTexts.unchangedResources}
      </ListToggle>
      <ListToggle isOn={search.values === '1'} onChange={(isOn) => change({ values: isOn ? '1' : undefined })}>
        {progressTreeTexts.values}
      </ListToggle>
    </>
  );
}

function urnOf({ row }: TreeRow): string {
  return row.urn;
}

function NoRows({ search, update }: { readonly search: UpdateSearch; readonly update: UpdateDetails }) {
  if (search.text !== undefined) {
    return (
      <Empty title={progressTreeTexts.noResourceMatches}>
        <p>{progressTreeTexts.noMatchHint(search.text)}</p>
      </Empty>
    );
  }
  if (isActive(update)) {
    return (
      <Empty title={update.status === 'running' ? progressTreeTexts.nothingYet : progressTreeTexts.waitingToStart}>
        <p>{progressTreeTexts.nothingYetHint}</p>
      </Empty>
    );
  }
  return (
    <Empty title={progressTreeTexts.noSteps}>
      <p>{update.status === 'cancelled' ? progressTreeTexts.cancelledHint : progressTreeTexts.noStepsHint}</p>
    </Empty>
  );
}

function TreeSkeleton() {
  return (
    <div className={styles['skeleton']} aria-busy="true">
      {[0, 1, 1, 2, 2, 1, 1].map((depth, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: bars in a fixed order.
        <div key={at} style={{ paddingLeft: depth * 20 }}>
          <Skeleton width={240 - depth * 30} />
        </div>
      ))}
    </div>
  );
}
