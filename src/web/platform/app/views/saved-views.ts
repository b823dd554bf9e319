import { useQuery } from '@tanstack/react-query';
import { type LinkProps, useParams } from '@tanstack/react-router';
import type { SavedView } from '../contract.ts';
import { useMe } from '../me.ts';
import { queryClient, trpc } from '../trpc.ts';

const staleMs = 60_000;

/** The server's limit. */
export const maxNameChars = 60;

/** Options of a mutation that reads the views again. */
export const thenReadViews = {
  // Also after a refusal: another user may have deleted the view.
  onSettled: () => queryClient.invalidateQueries({ queryKey: trpc.views.pathKey() }),
} as const;

/** The organization whose views are offered: the one in the path, or the user's only one. Undefined: none. */
export function useViewOwner(): string | undefined {
  const { organization } = useParams({ strict: false });
  const names = useMe()?.organizations.map(({ name }) => name) ?? [];
  if (organization === undefined) return names.length === 1 ? names[0] : undefined;
  return names.includes(organization) ? organization : undefined;
}

/** The user's own views, and those that members share. */
export function useSavedViews(organization: string | undefined) {
  return useQuery(
    trpc.views.list.queryOptions(
      { organization: organization ?? '' },
      { enabled: organization !== undefined, staleTime: staleMs },
    ),
  );
}

const paths = {
  stacks: '/$organization',
  activity: '/$organization/~/activity',
  ci: '/$organization/~/ci',
} as const satisfies Record<SavedView['page'], string>;

/** Where a view leads to. */
export function viewLink(organization: string, { page, search }: Pick<SavedView, 'page' | 'search'>): LinkProps {
  return { to: paths[page], params: { organization }, search } as LinkProps;
}
