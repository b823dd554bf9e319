import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Unplug } from 'lucide-react';
import type { ReactNode } from 'react';
import type { StackRef, UpdateDetails } from '../platform/app/procedure-types.ts';
import { nameInUrn } from '../platform/app/resource-name.ts';
import { trpc } from '../platform/app/trpc.ts';
import { buttonClass } from '../platform/ui/button.tsx';
import { Notice } from '../platform/ui/notice.tsx';
import { interruptedNoticeTexts } from './texts.tsx';
import { isActive } from './update-status.ts';

const maxNamed = 5;

/** Shown until the operations are resolved. */
export function InterruptedNotice({ stack, update }: { readonly stack: StackRef; readonly update: UpdateDetails }) {
  const { organization, project, stack: name } = stack;
  const mayHave = !update.dryRun && !isActive(update) && update.status !== 'succeeded' && update.version !== null;
  const { data } = useQuery(
    trpc.stacks.pending.queryOptions({ organization, project, stack: name }, { enabled: mayHave }),
  );
  if (!mayHave || data === undefined || data.isRunning || data.leftBy?.version !== update.version) return null;
  const { items } = data;
  if (items.length === 0) return null;
  const named = items.slice(0, maxNamed);
  return (
    <PendingNotice stack={stack} count={items.length}>
      <p>
        {interruptedNoticeTexts.cliEnded(
          named.map(({ operation, urn }) => `${operation} ${nameInUrn(urn)}`).join(', '),
          items.length - named.length,
        )}
      </p>
    </PendingNotice>
  );
}

export function PendingNotice({
  children,
  count,
  stack,
}: {
  readonly children: ReactNode;
  readonly count: number;
  readonly stack: StackRef;
}) {
  return (
    <Notice
      tone="warning"
      icon={<Unplug size={17} />}
      title={interruptedNoticeTexts.title(count)}
      action={
        <Link
          to="/$organization/$project/$stack"
          params={stack}
          search={{ tab: 'interrupted' }}
          className={buttonClass({ size: 'small' })}
        >
          {interruptedNoticeTexts.resolve}
        </Link>
      }
    >
      {children}
    </Notice>
  );
}
