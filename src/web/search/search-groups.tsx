import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { Link, useSearch } from '@tanstack/react-router';
import type { SearchField } from '../platform/app/procedure-types.ts';
import { shortType } from '../platform/app/resource-name.ts';
import { trpc } from '../platform/app/trpc.ts';
import { numberLocale } from '../platform/ui/locale.ts';
import { Skeleton } from '../platform/ui/skeleton.tsx';
import styles from './search-groups.module.css';
import { addTerm, groupTerms, type Within } from './search-terms.ts';
import { searchGroupsTexts } from './texts.tsx';

const fields: readonly (readonly [SearchField, string])[] = [
  ['type', searchGroupsTexts.type],
  ['stack', searchGroupsTexts.stack],
  ['project', searchGroupsTexts.project],
  ['provider', searchGroupsTexts.provider],
];
const maxListed = 12;

/** Selecting a group narrows the query. */
export function SearchGroups({ query, within }: { readonly query: string; readonly within: Within }) {
  const { by = 'type', groups: listed } = useSearch({ strict: false });
  const counts = useQuery(
    trpc.search.count.queryOptions(
      { query, ...within, by },
      { placeholderData: keepPreviousData, refetchOnWindowFocus: false },
    ),
  );
  if (counts.error) return null;
  const groups = counts.data?.groups.slice(0, listed === 'all' ? undefined : maxListed);
  const most = Math.max(1, ...(groups ?? []).map(({ resources }) => resources));
  const hidden = (counts.data?.groups.length ?? 0) - (groups?.length ?? 0);
  const others = counts.data?.otherGroups ?? 0;
  return (
    <section className={styles['groups']} aria-label={searchGroupsTexts.groups}>
      <nav className={styles['fields']} aria-label={searchGroupsTexts.groupBy}>
        {fields.map(([field, name]) => (
          <Link
            key={field}
            to="."
            replace
            search={(before: object) => ({ ...before, by: field === 'type' ? undefined : field, groups: undefined })}
            aria-current={field === by ? 'true' : undefined}
            activeOptions={{ exact: true }}
            activeProps={{}}
            className={styles['field']}
          >
            {name}
          </Link>
        ))}
      </nav>
      <ul className={styles['list']} aria-busy={counts.isPlaceholderData}>
        {groups === undefined
          ? [70, 52, 61, 40].map((width) => (
              <li key={width} className={styles['still']}>
                <Skeleton width={`${width}%`} />
              </li>
            ))
          : groups.map(({ name, resources, version }) => (
              <li key={`${name} ${version}`}>
                <Link
                  to="."
                  search={(before: object) => ({ ...before, q: addTerm(query, groupTerms(by, name, version)) })}
                  className={styles['group']}
                  activeOptions={{ exact: true }}
                  activeProps={{}}
                  title={`${name} ${version ?? ''}`}
                >
                  <span className={styles['name']}>{labelOf(by, name, version, within)}</span>
                  <span className={styles['count']}>{resources.toLocaleString(numberLocale)}</span>
                  <span
                    className={styles['bar']}
                    style={{ width: `${(100 * resources) / most}%` }}
                    aria-hidden="true"
                  />
                </Link>
              </li>
            ))}
      </ul>
      {hidden > 0 ? (
        <Link
          to="."
          replace
          resetScroll={false}
          search={(before: object) => ({ ...before, groups: 'all' as const })}
          activeOptions={{ exact: true }}
          activeProps={{}}
          className={styles['others']}
        >
          {searchGroupsTexts.more(hidden)}
        </Link>
      ) : others > 0 ? (
        <p className={styles['others']}>
          {searchGroupsTexts.largestOf(groups?.length ?? 0, (groups?.length ?? 0) + others)}
        </p>
      ) : null}
    </section>
  );
}

function labelOf(by: SearchField, name: string, version: string | null, { organization }: Within): string {
  if (by === 'type') return shortType(name);
  if (by === 'provider') return name === '' ? searchGroupsTexts.noProvider : `${name} ${version ?? ''}`;
  return organization === undefined ? name : name.slice(name.indexOf('/') + 1);
}
