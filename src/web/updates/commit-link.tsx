import { useQuery } from '@tanstack/react-query';
import type { StackRef } from '../platform/app/procedure-types.ts';
import { trpc } from '../platform/app/trpc.ts';
import { ExternalLink } from '../platform/ui/external-link.tsx';
import { forgeLink } from '../platform/ui/safe-link.ts';
import { shortCommit } from './update-status.ts';

/** A link if the stack's last update named the repository. */
export function CommitLink({ commit, stack }: { readonly commit: string; readonly stack: StackRef }) {
  const { organization, project, stack: name } = stack;
  // The page of the stack has read this data: a commit is not worth a request.
  const { data } = useQuery(trpc.stacks.get.queryOptions({ organization, project, stack: name }, { enabled: false }));
  return (
    <ExternalLink href={data?.git?.repo == null ? null : forgeLink(data.git.kind, data.git.repo, commit)}>
      <code title={commit}>{shortCommit(commit)}</code>
    </ExternalLink>
  );
}
