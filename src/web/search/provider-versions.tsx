import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Boxes } from 'lucide-react';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import type { SearchCounts } from '../platform/app/procedure-types.ts';
import { trpc } from '../platform/app/trpc.ts';
import { Badge } from '../platform/ui/badge.tsx';
import { Empty } from '../platform/ui/empty.tsx';
import { numberLocale } from '../platform/ui/locale.ts';
import { type Column, Table } from '../platform/ui/table.tsx';
import styles from './search-page.module.css';
import { groupTerms, type Within } from './search-terms.ts';
import { providerVersionsTexts } from './texts.tsx';

type Version = SearchCounts['groups'][number] & { readonly isNewest: boolean; readonly isFirst: boolean };

const columns: readonly Column<Version>[] = [
  {
    name: providerVersionsTexts.provider,
    isTitle: true,
    cell: ({ isFirst, name }) => <span className={isFirst ? styles['package'] : styles['repeated']}>{name}</span>,
  },
  {
    name: providerVersionsTexts.version,
    cell: ({ isNewest, version }) => (
      <span className={styles['version']}>
        <code>{version ?? providerVersionsTexts.notSet}</code>
        {isNewest ? <Badge tone="success">{providerVersionsTexts.latestHere}</Badge> : null}
      </span>
    ),
  },
  {
    name: providerVersionsTexts.stacks,
    align: 'right',
    cell: ({ name, stacks, version }) => (
      <Link
        to="."
        search={{ q: groupTerms('provider', name, version), by: 'stack' }}
        activeOptions={{ exact: true }}
        activeProps={{}}
        aria-label={providerVersionsTexts.stacksWith(stacks, name, version ?? '')}
      >
        {stacks.toLocaleString(numberLocale)}
      </Link>
    ),
  },
  {
    name: providerVersionsTexts.resources,
    align: 'right',
    cell: ({ resources }) => resources.toLocaleString(numberLocale),
  },
];

export function ProviderVersions({ within }: { readonly within: Within }) {
  const query = useQuery(trpc.search.providers.queryOptions(within, { refetchOnWindowFocus: false }));
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const groups = query.data?.groups;
  const items = groups?.map((group, at): Version => {
    const isFirst = groups[at - 1]?.name !== group.name;
    return { ...group, isFirst, isNewest: isFirst && group.version !== null && groups[at + 1]?.name === group.name };
  });
  return (
    <>
      <Table
        label={providerVersionsTexts.label}
        columns={columns}
        items={items}
        keyOf={({ name, version }) => `${name} ${version ?? ''}`}
        empty={
          <Empty title={providerVersionsTexts.noProvidersYet} icon={<Boxes size={20} />}>
            <p>{providerVersionsTexts.appearLater}</p>
          </Empty>
        }
      />
      {query.data?.isCut ? (
        <p className={styles['note']} role="status">
          {providerVersionsTexts.cut}
        </p>
      ) : null}
      {query.data?.isTrimmed ? <p className={styles['note']}>{providerVersionsTexts.trimmed}</p> : null}
    </>
  );
}
