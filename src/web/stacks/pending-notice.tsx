import { Link } from '@tanstack/react-router';
import { Unplug } from 'lucide-react';
import type { StackRef } from '../platform/app/contract.ts';
import { buttonClass } from '../platform/ui/button.tsx';
import { Notice } from '../platform/ui/notification.tsx';

/** Says that an update was interrupted, and leads to the repair. */
export function PendingNotice({ count, stack }: { readonly stack: StackRef; readonly count: number }) {
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
