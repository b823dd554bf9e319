import { useQuery } from '@tanstack/react-query';
import { Link, useParams, useSearch } from '@tanstack/react-router';
import { Problem } from '../app/problem-pages.tsx';
import { trpc } from '../app/trpc.ts';
import { Button } from '../ui/button.tsx';
import { toggleFavourite, useFavourites } from './favourites.ts';
import { toQuery } from './stack-filter.ts';

/** The list of stacks. */
export function StacksPage() {
  const { organization } = useParams({ strict: false });
  const search = useSearch({ strict: false });
  const query = useQuery(trpc.stacks.list.queryOptions(toQuery(search, organization)));
  const favourites = useFavourites();
  if (query.error) return <Problem error={query.error} onRetry={() => void query.refetch()} />;
  return (
    <>
      <h1>Stacks ({favourites.length})</h1>
      {query.data?.items.map((item) => (
        <p key={`${item.organization}/${item.project}/${item.stack}`}>
          <Link to="/$organization/$project/$stack" params={item}>
            {item.stack}
          </Link>
          <Button onClick={() => toggleFavourite(item)}>Favourite</Button>
        </p>
      ))}
    </>
  );
}
