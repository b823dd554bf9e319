import { useQuery } from '@tanstack/react-query';
import { type LinkProps, useParams } from '@tanstack/react-router';
import { useMe } from '../me.ts';
import type { OwnedView, SavedView } from '../procedure-types.ts';
import { queryClient, trpc } from '../trpc.ts';

const staleMs = 60_000;

/** The server's limit. */
export const maxNameChars = 60;

/** Options of a mutation that reloads the views. */
export const thenReadViews = {
  // After a refusal, too: another user may have deleted the view.
  onSettled: () => queryClient.invalidateQueries({ queryKey: trpc.views.pathKey() }),
} as const;

/** The organization in the path, or all of the user's. */
export function useViewOwners(): readonly string[] {
  const { organization } = useParams({ strict: false });
  const names = useMe()?.organizations.map(({ name }) => name) ?? [];
  return organization === undefined ? names : names.filter((name) => name === organization);
}

/** The user's own views, and the shared ones. */
export function useSavedViews(owners: readonly string[]) {
  const [organization = ''] = owners;
  const ofOne = useQuery(
    trpc.views.list.queryOptions({ organization }, { enabled: owners.length === 1, staleTime: staleMs }),
  );
  const ofAll = useQuery(
    trpc.views.everywhere.queryOptions(undefined, { enabled: owners.length > 1, staleTime: staleMs }),
  );
  const items: readonly OwnedView[] | undefined =
    owners.length > 1 ? ofAll.data?.items : ofOne.data?.items.map((view) => ({ ...view, organization }));
  return { items, error: ofOne.error ?? ofAll.error };
}

const paths = {
  stacks: '/$organization',
  activity: '/$organization/~/activity',
  ci: '/$organization/~/ci',
} as const satisfies Record<SavedView['page'], string>;

export function viewLink({ organization, page, search }: OwnedView): LinkProps {
  return { to: paths[page], params: { organization }, search } as LinkProps;
}
