import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { CircleX } from 'lucide-react';
import { PartProblem, useProblem } from '../platform/app/problem-pages.tsx';
import type { StackDetails, StackRef } from '../platform/app/procedure-types.ts';
import { nameInUrn, shortType } from '../platform/app/resource-name.ts';
import { trpc } from '../platform/app/trpc.ts';
import { buttonClass } from '../platform/ui/button.tsx';
import { ExternalLink } from '../platform/ui/external-link.tsx';
import { Notice } from '../platform/ui/notice.tsx';
import { Skeleton } from '../platform/ui/skeleton.tsx';
import { Time } from '../platform/ui/time.tsx';
import { stripColors } from '../updates/colored-text.ts';
import { readEvent } from '../updates/engine-event.ts';
import { listErrors } from '../updates/error-list.ts';
import { UpdateProgress } from '../updates/update-progress.ts';
import { viewKind } from '../updates/update-status.ts';
import styles from './failure-notice.module.css';
import { failureTexts } from './stack/texts.tsx';

/** Number of messages to read: errors come last, but a program may print a lot after them. */
const messageCount = 50;

/** Renders nothing while another update runs. */
export function FailureNotice({ details, stack }: { readonly stack: StackRef; readonly details: StackDetails }) {
  const { active, lastUpdate: last } = details;
  if (active !== null || last === null || last.result !== 'failed') return null;
  return (
    <Notice
      tone="failure"
      icon={<CircleX size={17} />}
      title={failureTexts.failed(
        viewKind(last),
        last.version ?? '',
        last.endedAt === null ? null : <Time at={last.endedAt} />,
        last.by,
      )}
      action={
        <>
          {last.ciUrl === null ? null : <ExternalLink href={last.ciUrl}>{failureTexts.ciRun}</ExternalLink>}
          <Link
            to="/$organization/$project/$stack/previews/$updateId"
            params={{ ...stack, updateId: last.updateId }}
            className={buttonClass({ size: 'small' })}
          >
            {failureTexts.open(viewKind(last))}
          </Link>
        </>
      }
    >
      <FirstError stack={stack} updateId={last.updateId} />
    </Notice>
  );
}

/** The first error that names a resource, and the number of other errors. It takes up the same space before it is loaded. */
function FirstError({ stack, updateId }: { readonly stack: StackRef; readonly updateId: string }) {
  const { organization, project, stack: name } = stack;
  const query = useQuery(
    trpc.updates.events.queryOptions(
      { organization, project, stack: name, updateId, type: 'diagnosticEvent', newestFirst: true, limit: messageCount },
      // The messages of an ended update do not change.
      { staleTime: 'static' },
    ),
  );
  const problem = useProblem(query);
  const errors = listErrors(progressOf(query.data?.items ?? []));
  // The error of the stack itself only says that the update failed.
  const ofResources = errors.filter(({ urn, type }) => urn !== null && type !== 'pulumi:pulumi:Stack');
  const first = ofResources[0] ?? errors[0];
  return (
    <div className={styles['error']}>
      {problem ? (
        <PartProblem {...problem} />
      ) : query.isPending ? (
        <>
          <Skeleton width={220} />
          <Skeleton width="60%" />
        </>
      ) : first === undefined ? (
        <p>{failureTexts.noMessage}</p>
      ) : (
        <>
          {first.urn === null ? null : (
            <p className={styles['where']} title={first.urn}>
              <code>{nameInUrn(first.urn)}</code> <span className={styles['type']}>{shortType(first.type)}</span>
              {ofResources.length < 2 ? null : (
                <span className={styles['type']}> {failureTexts.andMore(ofResources.length - 1)}</span>
              )}
            </p>
          )}
          <p className={styles['text']} title={stripColors(first.diagnostic.message).trim()}>
            {stripColors(first.diagnostic.message).trim()}
          </p>
        </>
      )}
    </div>
  );
}

function progressOf(items: readonly unknown[]): UpdateProgress {
  const progress = new UpdateProgress();
  for (const item of items) {
    const event = readEvent(item);
    if (event !== null) progress.add(event);
  }
  return progress;
}
