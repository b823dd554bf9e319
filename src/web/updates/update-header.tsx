import { GitBranch, GitCommitHorizontal, Hourglass, User, Workflow } from 'lucide-react';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import type { StackRef, UpdateDetails } from '../platform/app/procedure-types.ts';
import { Clamped } from '../platform/ui/clamped.tsx';
import { ExternalLink } from '../platform/ui/external-link.tsx';
import { duration } from '../platform/ui/relative-time.ts';
import { forgeLink } from '../platform/ui/safe-link.ts';
import { Skeleton } from '../platform/ui/skeleton.tsx';
import { Time } from '../platform/ui/time.tsx';
import { ChangeBar } from './change-bar.tsx';
import { StatusBadge } from './status-badge.tsx';
import { updateHeaderTexts } from './texts.tsx';
import { UpdateActions } from './update-actions.tsx';
import styles from './update-header.module.css';
import type { UpdateProgress } from './update-progress.ts';
import { useStatistics, usualOf } from './update-statistics.tsx';
import { isActive, shortCommit, viewEndReason, viewKind } from './update-status.ts';
import { useNowSeconds } from './use-update.ts';

const sayMs = 15_000;

interface UpdateHeaderProps {
  readonly stack: StackRef;
  readonly update: UpdateDetails;
  readonly progress: UpdateProgress;
  /** Revision of the tree: rerenders the header with it. */
  readonly revision: number;
}

export function UpdateHeader({ progress, stack, update }: UpdateHeaderProps) {
  const isRunning = isActive(update);
  // The usual duration is the duration of successful updates.
  const isComparable = update.status === 'succeeded' && !update.dryRun;
  const endReason = viewEndReason(update.endReason);
  const counted = progress.summary?.changes ?? Object.fromEntries(progress.doneByOperation);
  const changes = isRunning || update.changes === null ? counted : update.changes;
  return (
    <header className={styles['header']}>
      <div className={styles['top']}>
        <div className={styles['titles']}>
          <div className={styles['title']}>
            <h1>
              {viewKind(update)}
              {update.version === null || update.dryRun ? null : (
                <span className={styles['version']}> {update.version}</span>
              )}
            </h1>
            <StatusBadge status={update.status} />
          </div>
          {update.message ? (
            <Clamped lines={4} of={updateHeaderTexts.message}>
              <p className={styles['message']}>{update.message}</p>
            </Clamped>
          ) : null}
          {endReason === null || isRunning ? null : <p className={styles['reason']}>{endReason}</p>}
          {update.missingEntries === null ? null : (
            <p className={styles['reason']}>{updateHeaderTexts.missingEntries(update.missingEntries)}</p>
          )}
        </div>
        <UpdateActions stack={stack} update={update} />
      </div>
      <ul className={styles['facts']}>
        {update.by === null ? null : <Fact icon={<User size={14} />}>{update.by}</Fact>}
        <Fact icon={<Hourglass size={14} />}>
          <Took update={update} />
          <Usually stack={stack} update={update} isWanted={isComparable && progress.rows.size > 0} />
        </Fact>
        {update.branch === null ? null : (
          <Fact icon={<GitBranch size={14} />}>
            <code>{update.branch}</code>
          </Fact>
        )}
        {update.commit === null ? null : (
          <Fact icon={<GitCommitHorizontal size={14} />} title={update.commit}>
            <ExternalLink href={commitLink(update)}>
              <code>{shortCommit(update.commit)}</code>
            </ExternalLink>
          </Fact>
        )}
        {update.ciUrl === null ? null : (
          <Fact icon={<Workflow size={14} />}>
            <ExternalLink href={update.ciUrl}>{updateHeaderTexts.ciRun}</ExternalLink>
          </Fact>
        )}
        <li className={styles['changes']}>
          <ChangeBar changes={changes} />
        </li>
      </ul>
      {isRunning ? <RunningLine progress={progress} /> : null}
    </header>
  );
}

function Fact({
  children,
  icon,
  title,
}: {
  readonly icon: ReactNode;
  readonly children: ReactNode;
  readonly title?: string;
}) {
  return (
    <li className={styles['fact']} title={title}>
      <span className={styles['factIcon']} aria-hidden="true">
        {icon}
      </span>
      <span className={styles['factText']}>{children}</span>
    </li>
  );
}

/** The commit's page, if the CLI sent the location of the repository. */
function commitLink({ commit, environment }: UpdateDetails): string | null {
  const { 'vcs.kind': kind, 'vcs.owner': owner, 'vcs.repo': repo } = environment ?? {};
  return owner && repo ? forgeLink(kind, `${owner}/${repo}`, commit) : null;
}

function Took({ update }: { readonly update: UpdateDetails }) {
  const now = useNowSeconds(isActive(update));
  if (update.startedAt === null) return updateHeaderTexts.waitingToStart;
  const started = Date.parse(update.startedAt) / 1000;
  const ended = update.endedAt === null ? now : Date.parse(update.endedAt) / 1000;
  return updateHeaderTexts.took(
    <Time at={update.startedAt} />,
    update.endedAt === null,
    duration(ended - started),
    update.waited === null ? null : duration(update.waited.seconds),
  );
}

/** If enough durations are known. Loaded after the main data of the page. */
function Usually({
  isWanted,
  stack,
  update,
}: {
  readonly stack: StackRef;
  readonly update: UpdateDetails;
  readonly isWanted: boolean;
}) {
  const usual = usualOf(useStatistics(stack, update, isWanted).data);
  // Another view of the page may have loaded it.
  return usual === null || !isWanted ? null : updateHeaderTexts.usually(duration(usual.medians.seconds));
}

/** Throttles the text: screen readers announce each change, and would say nothing else. */
function useSaid(words: string): string {
  const [said, setSaid] = useState(words);
  const newest = useRef(words);
  newest.current = words;
  useEffect(() => {
    const timer = setInterval(() => setSaid(newest.current), sayMs);
    return () => clearInterval(timer);
  }, []);
  return said;
}

/** The current progress, for sighted users and screen readers. */
function RunningLine({ progress }: { readonly progress: UpdateProgress }) {
  const downloads = [...progress.downloads.values()].filter(({ isDone }) => !isDone);
  const done = [...progress.doneByOperation.values()].reduce((sum, count) => sum + count, 0);
  const words = [
    progress.runningCount > 0 ? updateHeaderTexts.inProgress(progress.runningCount) : null,
    updateHeaderTexts.done(done),
    progress.failedCount > 0 ? updateHeaderTexts.failed(progress.failedCount) : null,
  ]
    .filter((part) => part !== null)
    .join(', ');
  return (
    <div className={styles['running']}>
      <span className={styles['pulse']} aria-hidden="true" />
      <p aria-hidden="true">{words}</p>
      <p className="unseen" role="status">
        {useSaid(words)}
      </p>
      {downloads.map(({ id, message, received, total }) => (
        <p key={id} className={styles['download']}>
          {message || id}
          {total > 0 ? ` ${Math.min(100, Math.floor((received / total) * 100))} %` : ''}
        </p>
      ))}
    </div>
  );
}

export function UpdateHeaderSkeleton() {
  return (
    <div className={styles['skeleton']} aria-busy="true">
      <Skeleton width={220} height={24} />
      <Skeleton width="60%" />
      <Skeleton width="40%" />
      <div className={styles['skeletonRows']}>
        {[72, 54, 61, 48, 57, 44].map((width) => (
          <Skeleton key={width} width={`${width}%`} />
        ))}
      </div>
    </div>
  );
}
