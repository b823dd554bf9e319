import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { PackageOpen } from 'lucide-react';
import type { ImportedStack, ImportRun } from '../../platform/app/contract.ts';
import { Problem, useProblem } from '../../platform/app/problem-pages.tsx';
import { trpc } from '../../platform/app/trpc.ts';
import { Badge } from '../../platform/ui/badge.tsx';
import { Code } from '../../platform/ui/code.tsx';
import { counted } from '../../platform/ui/counted.ts';
import { Empty } from '../../platform/ui/empty.tsx';
import { FactList, FactRow } from '../../platform/ui/fact-list.tsx';
import { Page, Section } from '../../platform/ui/page.tsx';
import { pagedList } from '../../platform/ui/paged-list.ts';
import { Skeleton } from '../../platform/ui/skeleton.tsx';
import { type Column, Table } from '../../platform/ui/table.tsx';
import { Time } from '../../platform/ui/time.tsx';
import { countsOf, titleOf } from './import-labels.ts';
import styles from './imports.module.css';
import { RunBadges } from './run-badges.tsx';

const route = getRouteApi('/$organization/~/imports/$run');

/** A run of `holdfast import`, with what it did with each stack. */
export function ImportPage() {
  const { organization, run: id } = route.useParams();
  const query = useQuery(trpc.imports.get.queryOptions({ organization, id }));
  const stacks = useInfiniteQuery(
    trpc.imports.stacks.infiniteQueryOptions({ organization, id }, { getNextPageParam: ({ next }) => next }),
  );
  const problem = useProblem(query, stacks);
  if (problem) return <Problem {...problem} />;
  const run = query.data;
  if (run === undefined)
    return (
      <Page title="Import">
        <Skeleton width={320} />
      </Page>
    );
  return (
    <Page title={titleOf(run)} lead={<span className={styles['source']}>{run.source}</span>}>
      <FactList>
        <FactRow name="Result">
          <RunBadges run={run} />
        </FactRow>
        <FactRow name={came[run.kind] ?? 'Stacks'}>{countsOf(run)}</FactRow>
        <FactRow name="Started">
          <Time at={run.startedAt} />
        </FactRow>
        <FactRow name="Ended">
          {run.endedAt === null ? 'still running, or interrupted' : <Time at={run.endedAt} />}
        </FactRow>
        <FactRow name="Run by">{run.by}, on a server</FactRow>
        {run.kind === 'import' ? (
          <FactRow name="Compared with its source">
            {run.verified === null ? 'not yet' : <Time at={run.verified.at} />}
          </FactRow>
        ) : null}
      </FactList>
      <Section title="Stacks" lead="Stacks that were already complete are not listed.">
        <Table
          {...pagedList(stacks)}
          label="Stacks"
          columns={columnsOf(organization, run)}
          keyOf={({ name }) => name}
          empty={
            <Empty title="Nothing new" icon={<PackageOpen size={20} />}>
              <p>A comparison with the source shows whether everything is here:</p>
              <Code>{`holdfast import --from ${run.source} --organization ${organization} --verify`}</Code>
            </Empty>
          }
        />
      </Section>
    </Page>
  );
}

const came: Readonly<Record<string, string>> = { import: 'Imported', verify: 'Equal', rollback: 'Deleted' };
const noteNames: Readonly<Record<string, string>> = { import: 'Skipped', verify: 'Differences', rollback: 'Kept' };

function columnsOf(organization: string, { kind }: ImportRun): Column<ImportedStack>[] {
  return [
    {
      name: 'Stack',
      isTitle: true,
      cell: ({ isHere, name, project, stack }) =>
        isHere && project !== null ? (
          <Link to="/$organization/$project/$stack" params={{ organization, project, stack }}>
            {project}/{stack}
          </Link>
        ) : (
          name
        ),
    },
    {
      name: came[kind] ?? 'Count',
      cell: ({ previews, versions }) =>
        counted(versions, 'version') + (previews > 0 ? `, ${counted(previews, 'preview')}` : ''),
    },
    ...(kind === 'import' ? [{ name: 'Secrets', isMinor: true, cell: secretsOf }] : []),
    {
      name: noteNames[kind] ?? 'Notes',
      cell: ({ notes, quarantine }) =>
        notes.length === 0 && quarantine === null ? (
          'nothing'
        ) : (
          <ul className={styles['notes']}>
            {quarantine === null ? null : (
              <li>
                <Badge tone="warning">quarantine</Badge> The CLI refuses its newest state: {quarantine}
              </li>
            )}
            {notes.map((note) => (
              <li key={note}>{note}</li>
            ))}
          </ul>
        ),
    },
  ];
}

/** Who decrypts the secrets of the stack. */
function secretsOf({ secretsProvider }: ImportedStack): string {
  if (secretsProvider === null) return 'none found';
  return secretsProvider === 'service' ? 'of the service' : `${secretsProvider}, as before`;
}
