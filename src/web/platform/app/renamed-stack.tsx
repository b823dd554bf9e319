import { useQuery } from '@tanstack/react-query';
import { Navigate } from '@tanstack/react-router';
import { errorCode } from './api-error.ts';
import { NotFoundPage, Problem, type ProblemProps } from './problem-pages.tsx';
import type { StackRef } from './procedure-types.ts';
import { trpc } from './trpc.ts';

/** If the stack was renamed, shows its page under the new name. */
export function StackProblem({ stack, ...problem }: { readonly stack: StackRef } & ProblemProps) {
  const isMissing = errorCode(problem.error) === 'NOT_FOUND';
  const { data, isPending } = useQuery(trpc.stacks.renamed.queryOptions(stack, { enabled: isMissing, retry: false }));
  if (isMissing && isPending) return null;
  if (!data) return isMissing ? <NotFoundPage /> : <Problem {...problem} />;
  return <Navigate to="." params={(known) => ({ ...known, ...data })} search={true} replace />;
}
