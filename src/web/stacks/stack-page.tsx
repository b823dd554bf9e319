import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { Problem } from '../app/problem-pages.tsx';
import { trpc } from '../app/trpc.ts';

const route = getRouteApi('/$organization/$project/$stack');

/** One stack. */
export function StackPage() {
  const params = route.useParams();
  const query = useQuery(trpc.stacks.get.queryOptions(params));
  if (query.error) return <Problem error={query.error} onRetry={() => void query.refetch()} />;
  return (
    <h1>
      {params.project}/{params.stack}
    </h1>
  );
}
