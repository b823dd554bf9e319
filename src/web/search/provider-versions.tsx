import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Boxes } from 'lucide-react';
import type { SearchCounts } from '../platform/app/contract.ts';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import { trpc } from '../platform/app/trpc.ts';
import { Badge } from '../platform/ui/badge.tsx';
import { counted } from '../platform/ui/counted.ts';
import { Empty } from '../platform/ui/empty.tsx';
import { type Column, Table } from '../platform/ui/table.tsx';
import styles from './search-page.module.css';
import { groupTerms, type Within } from './search-terms.ts';

type Version = SearchCounts['groups'][number] & { readonly isNewest: boolean; readonly isFirst: boolean };

const columns: readonly Column<Version>[] = [
  {
    name: 'Provider',
    isTitle: true,
    cell: ({ isFirst, name }) => <span className={isFirst ? styles['package'] : styles['repeated']}>{name}</span>,
  },
  {
    name: 'Version',
    cell: ({ isNewest, version }) => (
      <span className={styles['version']}>
        <code>{version ?? 'not set'}</code>
        {isNewest ? <Badge tone="success">latest here</Badge> : null}
      </span>
    ),
  },
  {
    name: 'Stacks',
    align: 'right',
    cell: ({ name, stacks, version }) => (
      <Link
        to="."
        search={{ q: groupTerms('provider', name, version), by: 'stack' }}
        activeProps={{}}
        aria-label={`${counted(stacks, 'stack')} with ${name} ${version ?? ''}`}
      >
        {stacks.toLocaleString('en')}
      </Link>
    ),
  },
  { name: 'Resources', align: 'right', cell: ({ resources }) => resources.toLocaleString('en') },
];

/** The provider versions in use, and the stacks that use them. */
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
        label="Versions of providers"
        columns={columns}
        items={items}
        keyOf={({ name, version }) => `${name} ${version ?? ''}`}
        empty={
          <Empty title="No providers yet" icon={<Boxes size={20} />}>
            <p>They appear after the first update that creates a resource with a provider.</p>
          </Empty>
        }
      />
      {query.data?.isCut ? (
        <p className={styles['note']} role="status">
          This took too long and stopped after some of the stacks: the counts are too low.
        </p>
      ) : null}
      {query.data?.isTrimmed ? <p className={styles['note']}>Stacks that you cannot read are not counted.</p> : null}
    </>
  );
}
