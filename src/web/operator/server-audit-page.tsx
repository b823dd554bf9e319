import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { AuditDetails } from '../audit/audit-details.tsx';
import { auditColumns, NothingFound } from '../audit/audit-page.tsx';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import styles from '../platform/app/settings-page.module.css';
import { TextFilter } from '../platform/app/text-filter.tsx';
import { trpc } from '../platform/app/trpc.ts';
import { pageTexts } from '../platform/texts.tsx';
import { FilterBar, Page } from '../platform/ui/page.tsx';
import { pagedList } from '../platform/ui/paged-list.ts';
import { Table } from '../platform/ui/table.tsx';
import { useToggles } from '../platform/ui/toggles.ts';
import { serverAuditTexts } from './texts.tsx';

/** Sign-ins and personal tokens of all users, and operators' actions. */
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
    document.title = pageTexts.tabTitle(pageTexts.audit);
  }, []);
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  return (
    <Page title={serverAuditTexts.title} lead={serverAuditTexts.lead}>
      <FilterBar>
        <div className={styles['filter']}>
          <TextFilter
            label={serverAuditTexts.who}
            value={actor}
            placeholder={serverAuditTexts.login}
            onChange={setActor}
          />
        </div>
        <div className={styles['filter']}>
          <TextFilter
            label={serverAuditTexts.onWhat}
            value={object}
            placeholder={serverAuditTexts.partOfName}
            onChange={setObject}
          />
        </div>
      </FilterBar>
      <Table
        label={serverAuditTexts.events}
        columns={auditColumns('', open, toggle)}
        {...pagedList(query)}
        keyOf={({ number }) => String(number)}
        details={(event) => (open.has(event.number) ? <AuditDetails event={event} /> : undefined)}
        empty={<NothingFound query={query} />}
      />
    </Page>
  );
}
