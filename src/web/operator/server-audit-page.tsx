import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { ScrollText } from 'lucide-react';
import { useEffect, useState } from 'react';
import { Problem, useProblem } from '../app/problem-pages.tsx';
import { trpc } from '../app/trpc.ts';
import { AuditDetails } from '../organization/audit-details.tsx';
import { auditColumns } from '../organization/audit-page.tsx';
import styles from '../organization/people.module.css';
import { TextFilter } from '../organization/text-filter.tsx';
import { Empty } from '../ui/empty.tsx';
import { FilterBar, Page } from '../ui/page.tsx';
import { Table } from '../ui/table.tsx';

/** What belongs to no organization: sign-ins and personal tokens of everybody, and what operators do. */
export function ServerAuditPage() {
  const [actor, setActor] = useState<string | undefined>();
  const [object, setObject] = useState<string | undefined>();
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const query = useInfiniteQuery(
    trpc.operator.audit.infiniteQueryOptions(
      { ...(actor === undefined ? {} : { actor }), ...(object === undefined ? {} : { object }) },
      { getNextPageParam: ({ next }) => next, placeholderData: keepPreviousData },
    ),
  );
  useEffect(() => {
    document.title = 'Audit log - Holdfast';
  }, []);
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const toggle = (number: number): void => {
    const next = new Set(open);
    if (!next.delete(number)) next.add(number);
    setOpen(next);
  };
  return (
    <Page
      title="Audit log"
      lead="Sign-ins, passwords, passkeys and personal tokens of everybody, and what concerns no organization."
    >
      <FilterBar>
        <div className={styles['filter']}>
          <TextFilter label="Who" value={actor} placeholder="Login" onChange={setActor} />
        </div>
        <div className={styles['filter']}>
          <TextFilter label="On what" value={object} placeholder="Part of a name" onChange={setObject} />
        </div>
      </FilterBar>
      <Table
        label="Events"
        columns={auditColumns('', open, toggle)}
        items={query.data?.pages.flatMap(({ items }) => items)}
        keyOf={({ number }) => String(number)}
        isBusy={query.isFetchingNextPage}
        hasMore={query.hasNextPage}
        onMore={() => void query.fetchNextPage()}
        details={(event) => (open.has(event.number) ? <AuditDetails event={event} /> : undefined)}
        empty={<Empty title="Nothing matches" icon={<ScrollText size={20} />} />}
      />
    </Page>
  );
}
