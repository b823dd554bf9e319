import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { ScrollText } from 'lucide-react';
import { useEffect, useState } from 'react';
import { AuditDetails } from '../audit/audit-details.tsx';
import { auditColumns } from '../audit/audit-page.tsx';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import styles from '../platform/app/settings-page.module.css';
import { TextFilter } from '../platform/app/text-filter.tsx';
import { trpc } from '../platform/app/trpc.ts';
import { Empty } from '../platform/ui/empty.tsx';
import { FilterBar, Page } from '../platform/ui/page.tsx';
import { pagedList } from '../platform/ui/paged-list.ts';
import { Table } from '../platform/ui/table.tsx';
import { useToggles } from '../platform/ui/toggles.ts';

/** Events outside of organizations: sign-ins and personal tokens of all users, and operators' actions. */
export function ServerAuditPage() {
  const [actor, setActor] = useState<string | undefined>();
  const [object, setObject] = useState<string | undefined>();
  const [open, toggle] = useToggles<number>();
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
  return (
    <Page
      title="Audit log"
      lead="Sign-ins, passwords, passkeys and personal tokens of all users, and other events outside of organizations."
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
        {...pagedList(query)}
        keyOf={({ number }) => String(number)}
        details={(event) => (open.has(event.number) ? <AuditDetails event={event} /> : undefined)}
        empty={<Empty title="Nothing matches" icon={<ScrollText size={20} />} />}
      />
    </Page>
  );
}
