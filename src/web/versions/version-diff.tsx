import { useInfiniteQuery } from '@tanstack/react-query';
import type { StackRef, VersionDifference } from '../app/contract.ts';
import { Problem } from '../app/problem-pages.tsx';
import { trpc } from '../app/trpc.ts';
import { isSealed } from '../resources/json-tree.ts';
import { Sealed } from '../resources/json-view.tsx';
import { shortType } from '../resources/resource-name.ts';
import { Button } from '../ui/button.tsx';
import { Skeleton } from '../ui/skeleton.tsx';
import { viewOperation } from '../updates/operations.ts';
import styles from './version-diff.module.css';

const pageSize = 50;
const maxCharacters = 600;
const operations = { created: 'create', updated: 'update', deleted: 'delete', replaced: 'replace' } as const;

/** Resources that differ between two versions, with their properties. */
export function VersionDiff({
  from,
  stack,
  to,
}: {
  readonly stack: StackRef;
  readonly from: number;
  readonly to: number;
}) {
  const { organization, project, stack: name } = stack;
  const query = useInfiniteQuery(
    trpc.versions.diff.infiniteQueryOptions(
      { organization, project, stack: name, from, to, limit: pageSize },
      // Versions do not change.
      { getNextPageParam: (page) => page.next, staleTime: Number.POSITIVE_INFINITY },
    ),
  );
  if (query.error) return <Problem error={query.error} onRetry={() => void query.refetch()} />;
  if (query.isPending) return <Skeleton width="50%" />;
  const items = query.data.pages.flatMap((page) => page.items);
  if (items.length === 0) return <p className={styles['none']}>No resource differs.</p>;
  return (
    <>
      <ul className={styles['items']}>
        {items.map((item) => (
          <li key={item.urn} className={styles['item']}>
            <Difference item={item} />
          </li>
        ))}
      </ul>
      {query.hasNextPage ? (
        <Button disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
          More differences
        </Button>
      ) : null}
    </>
  );
}

function Difference({ item }: { readonly item: VersionDifference }) {
  const operation = viewOperation(operations[item.change]);
  const isKept = item.change === 'updated' || item.change === 'replaced';
  return (
    <details open={isKept && item.paths.length <= 20}>
      <summary className={styles['summary']} title={item.urn}>
        <span className={`${styles['sign']} ${styles[operation.tone]}`} aria-hidden="true">
          {operation.sign}
        </span>
        <span className={styles['name']}>{item.name}</span>
        <span className={styles['type']}>{shortType(item.type)}</span>
        <span className={styles['change']}>
          {item.change}
          {isKept && item.pathCount > 0
            ? `, ${item.pathCount} ${item.pathCount === 1 ? 'property' : 'properties'}`
            : ''}
        </span>
      </summary>
      <dl className={styles['paths']}>
        {item.paths.map(({ after, before, path }) => (
          <div key={path} className={styles['path']}>
            <dt>{path}</dt>
            {before === null ? null : (
              <dd className={styles['before']}>
                <span className="unseen">before: </span>
                <Value value={before} />
              </dd>
            )}
            {after === null ? null : (
              <dd className={styles['after']}>
                <span className="unseen">after: </span>
                <Value value={after} />
              </dd>
            )}
          </div>
        ))}
      </dl>
      {item.pathCount > item.paths.length ? (
        <p className={styles['more']}>{item.pathCount - item.paths.length} more properties differ.</p>
      ) : null}
    </details>
  );
}

function Value({ value }: { readonly value: unknown }) {
  if (isSealed(value)) return <Sealed />;
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return (
    <span className={styles['value']}>{text.length > maxCharacters ? `${text.slice(0, maxCharacters)}…` : text}</span>
  );
}
