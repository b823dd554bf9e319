import { useMutation } from '@tanstack/react-query';
import { Pin, PinOff } from 'lucide-react';
import type { StackRef, VersionItem } from '../../platform/app/contract.ts';
import { thenRefresh } from '../../platform/app/then-refresh.ts';
import { trpc } from '../../platform/app/trpc.ts';
import { Button } from '../../platform/ui/button.tsx';

/** Pins a version, whose state retention then keeps, or unpins it. */
export function PinButton({ stack, version }: { readonly stack: StackRef; readonly version: VersionItem }) {
  const { organization, project, stack: name } = stack;
  const refresh = thenRefresh(() => {});
  const pin = useMutation(trpc.retention.pin.mutationOptions(refresh));
  const unpin = useMutation(trpc.retention.unpin.mutationOptions(refresh));
  const isPinned = version.pinnedBy !== null;
  const change = isPinned ? unpin : pin;
  return (
    <>
      <Button
        size="small"
        disabled={change.isPending}
        title={isPinned ? `Pinned by ${version.pinnedBy}` : 'Retention never deletes the state of a pinned version'}
        onClick={() => change.mutate({ organization, project, stack: name, version: version.version })}
      >
        {isPinned ? <PinOff size={14} aria-hidden="true" /> : <Pin size={14} aria-hidden="true" />}
        {isPinned ? 'Unpin' : 'Pin'}
      </Button>
      {change.error === null ? null : <span role="alert">{change.error.message}</span>}
    </>
  );
}
