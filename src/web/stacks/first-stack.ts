import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import type { StackItem } from '../platform/app/procedure-types.ts';
import { queryClient, trpc } from '../platform/app/trpc.ts';

/** The page holds the token, because the steps are gone as soon as there is a filter, or a colleague's stack. */
export function useFirstToken() {
  return useMutation(
    trpc.tokens.createMine.mutationOptions({
      // The response contains the token's value: no cache may keep it.
      gcTime: 0,
      onSuccess: () => void queryClient.invalidateQueries({ queryKey: trpc.tokens.pathKey() }),
    }),
  );
}

export type FirstToken = ReturnType<typeof useFirstToken>;

export type FirstStack = Pick<StackItem, 'organization' | 'project' | 'stack'>;

/** The stack appeared while the page showed none. `items` are all stacks, null if unknown. */
export function useFirstStack(items: readonly FirstStack[] | null): FirstStack | null {
  const [wasEmpty, setWasEmpty] = useState(false);
  if (items?.length === 0 && !wasEmpty) setWasEmpty(true);
  return wasEmpty ? (items?.[0] ?? null) : null;
}
