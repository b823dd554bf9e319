import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { PackageOpen } from 'lucide-react';
import { Problem, useProblem } from '../../platform/app/problem-pages.tsx';
import type { ImportRun } from '../../platform/app/procedure-types.ts';
import { every, trpc } from '../../platform/app/trpc.ts';
import { Code } from '../../platform/ui/code.tsx';
import { Empty } from '../../platform/ui/empty.tsx';
import { Page } from '../../platform/ui/page.tsx';
import { pagedList } from '../../platform/ui/paged-list.ts';
import { type Column, Table } from '../../platform/ui/table.tsx';
import { Time } from '../../platform/ui/time.tsx';
import { countsOf, kindOf } from './import-labels.ts';
import styles from './imports.module.css';
import { RunBadges } from './run-badges.tsx';
import { importsTexts } from './texts.ts';

const route = getRouteApi('/$organization/~/imports');
const pollMs = 15_000;

/** The imports of operators, for admins of the organization. */
export function ImportsPage() {
  const { organization } = route.useParams();
  const query = useInfiniteQuery(
    trpc.imports.list.infiniteQueryOptions(
      { organization },
      { getNextPageParam: ({ next }) => next, refetchInterval: every(pollMs) },
    ),
  );
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const columns: Column<ImportRun>[] = [
    {
      name: importsTexts.run,
      isTitle: true,
      cell: (run) => (
        <Link to="/$organization/~/imports/$run" params={{ organization, run: run.id }}>
          {kindOf(run)} <Time at={run.startedAt} />
        </Link>
      ),
    },
    { name: importsTexts.source, cell: ({ source }) => <span className={styles['source']}>{source}</span> },
    { name: importsTexts.content, cell: countsOf },
    { name: importsTexts.result, cell: (run) => <RunBadges run={run} /> },
    { name: importsTexts.by, cell: ({ by }) => by },
  ];
  return (
    <Page title={importsTexts.imports} lead={importsTexts.lead}>
      <Table
        {...pagedList(query)}
        label={importsTexts.imports}
        columns={columns}
        keyOf={({ id }) => id}
        empty={
          <Empty title={importsTexts.none} icon={<PackageOpen size={20} />}>
            <p>{importsTexts.noneHint}</p>
            <Code>{`holdfast import --from https://api.pulumi.com --organization ${organization}`}</Code>
          </Empty>
        }
      />
    </Page>
  );
}
