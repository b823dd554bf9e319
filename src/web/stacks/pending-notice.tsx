import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Unplug } from 'lucide-react';
import type { PendingStep, PendingSteps, StackDetails, StackRef } from '../app/contract.ts';
import { trpc } from '../app/trpc.ts';
import { buttonClass } from '../ui/button.tsx';
import { Notice } from '../ui/notice.tsx';

/** What had begun when the last update ended, while no update runs. */
export function usePending(stack: StackRef, details: StackDetails | undefined): PendingSteps | undefined {
  const isOn = details !== undefined && details.version > 0 && details.active === null;
  const query = useQuery(
    trpc.stacks.pending.queryOptions(
      stack,
      // It is of the newest version, and changes with it.
      { enabled: isOn, staleTime: 60_000, refetchOnWindowFocus: false },
    ),
  );
  return isOn ? query.data : undefined;
}

/** Says that an update was interrupted, and leads to the repair. */
export function PendingNotice({
  pending,
  stack,
}: {
  readonly stack: StackRef;
  readonly pending: readonly PendingStep[];
}) {
  const count = pending.length;
  return (
    <Notice
      tone="warning"
      icon={<Unplug size={17} />}
      title={`${count} ${count === 1 ? 'operation was' : 'operations were'} interrupted`}
      action={
        <Link
          to="/$organization/$project/$stack"
          params={stack}
          search={{ tab: 'interrupted' }}
          className={buttonClass({ size: 'small' })}
        >
          Look into it
        </Link>
      }
    >
      <p>An update ended while it worked on them, so nobody knows whether they were done.</p>
    </Notice>
  );
}
