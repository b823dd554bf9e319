import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { LockKeyhole, TriangleAlert } from 'lucide-react';
import type { QueueItem, StackDetails, StackRef } from '../platform/app/procedure-types.ts';
import { every, trpc } from '../platform/app/trpc.ts';
import { buttonClass } from '../platform/ui/button.tsx';
import { ExternalLink } from '../platform/ui/external-link.tsx';
import { Notice } from '../platform/ui/notice.tsx';
import { Since } from '../platform/ui/time.tsx';
import { ApprovalNotice } from '../updates/approvals/approval-notice.tsx';
import { CommitLink } from '../updates/commit-link.tsx';
import { viewKind } from '../updates/update-status.ts';
import { FailureNotice } from './failure-notice.tsx';
import { FreezeNotice } from './freeze-notice.tsx';
import styles from './lock-notice.module.css';
import { lockTexts } from './stack/texts.tsx';

const pollMs = 3_000;
const maxListed = 20;

/** The lock and its queue, a failed update, a fault, a freeze, an approval. */
export function LockNotice({ details, stack }: { readonly stack: StackRef; readonly details: StackDetails }) {
  return (
    <>
      {details.active === null && details.waiting === 0 ? null : <Lock stack={stack} details={details} />}
      <FailureNotice stack={stack} details={details} />
      {details.fault === null ? null : (
        <Notice tone="failure" icon={<TriangleAlert size={17} />} title={faultTitle(details.fault.kind)}>
          <p>{details.fault.message}</p>
        </Notice>
      )}
      <FreezeNotice stack={stack} details={details} />
      <ApprovalNotice stack={stack} />
    </>
  );
}

function faultTitle(kind: string): string {
  return kind === '' ? lockTexts.fault : lockTexts.faultOf(kind.replaceAll('-', ' '));
}

function Lock({ details, stack }: { readonly stack: StackRef; readonly details: StackDetails }) {
  const { active, waiting } = details;
  const queue = useQuery(
    trpc.queue.list.queryOptions(
      { ...stack, limit: maxListed },
      { enabled: waiting > 0, refetchInterval: every(pollMs) },
    ),
  );
  const waits = queue.data?.items.filter(({ state }) => state === 'waiting') ?? [];
  return (
    <Notice
      tone="running"
      icon={<LockKeyhole size={17} />}
      title={
        active === null
          ? lockTexts.waitsForLock(waiting)
          : lockTexts.heldBy(viewKind(active), active.by, active.since === null ? null : <Since at={active.since} />)
      }
      action={
        active === null ? undefined : (
          <>
            {active.ciUrl === null ? null : <ExternalLink href={active.ciUrl}>{lockTexts.ciRun}</ExternalLink>}
            <Link
              to="/$organization/$project/$stack/previews/$updateId"
              params={{ ...stack, updateId: active.updateId }}
              className={buttonClass({ size: 'small' })}
            >
              {lockTexts.viewProgress}
            </Link>
          </>
        )
      }
    >
      {active === null || (active.branch === null && active.commit === null) ? null : (
        <p className={styles['source']}>
          {active.branch === null ? null : <code>{active.branch}</code>}
          {active.commit === null ? null : <CommitLink commit={active.commit} stack={stack} />}
        </p>
      )}
      {waits.length === 0 ? null : (
        <ol className={styles['queue']} aria-label={lockTexts.waitingRuns}>
          {waits.map((item) => (
            <Waiting key={`${item.position} ${item.since}`} item={item} stack={stack} />
          ))}
        </ol>
      )}
    </Notice>
  );
}

function Waiting({ item, stack }: { readonly item: QueueItem; readonly stack: StackRef }) {
  return (
    <li className={styles['item']}>
      <span className={styles['position']}>{item.position}</span>
      <span>{item.by ?? lockTexts.somebody}</span>
      {item.branch === null ? null : <code>{item.branch}</code>}
      {item.commit === null ? null : <CommitLink commit={item.commit} stack={stack} />}
      <span>{lockTexts.waitsFor(<Since at={item.since} />)}</span>
      {item.why === null ? null : <span className={styles['why']}>{item.why}</span>}
      {item.ciUrl === null ? null : <ExternalLink href={item.ciUrl}>{lockTexts.ciRun}</ExternalLink>}
    </li>
  );
}
