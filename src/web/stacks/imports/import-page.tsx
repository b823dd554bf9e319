import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { PackageOpen } from 'lucide-react';
import { Problem, useProblem } from '../../platform/app/problem-pages.tsx';
import type { ImportedStack, ImportRun } from '../../platform/app/procedure-types.ts';
import { every, trpc } from '../../platform/app/trpc.ts';
import { Badge } from '../../platform/ui/badge.tsx';
import { Code } from '../../platform/ui/code.tsx';

import { Empty } from '../../platform/ui/empty.tsx';
import { FactList, FactRow } from '../../platform/ui/fact-list.tsx';
import { Page, Section } from '../../platform/ui/page.tsx';
import { pagedList } from '../../platform/ui/paged-list.ts';
import { Skeleton } from '../../platform/ui/skeleton.tsx';
import { type Column, Table } from '../../platform/ui/table.tsx';
import { Time } from '../../platform/ui/time.tsx';
import { useRefetchOnChange } from '../../updates/refetch-on-change.ts';
import { countsOf, titleOf } from './import-labels.ts';
import styles from './imports.module.css';
import { RunBadges } from './run-badges.tsx';
import { importPageTexts, importTexts } from './texts.ts';

const pollMs = 15_000;
const route = getRouteApi('/$organization/~/imports/$run');

export function ImportPage() {
  const { organization, run: id } = route.useParams();
  const query = useQuery(
    trpc.imports.get.queryOptions(
      { organization, id },
      { refetchInterval: ({ state }) => every(state.data?.endedAt === null ? pollMs : null)({ state }) },
    ),
  );
  const isRunning = query.data?.endedAt === null;
  const stacks = useInfiniteQuery(
    trpc.imports.stacks.infiniteQueryOptions(
      { organization, id },
      { getNextPageParam: ({ next }) => next, refetchInterval: every(isRunning ? pollMs : null) },
    ),
  );
  useRefetchOnChange(String(isRunning), stacks.refetch);
  const problem = useProblem(query, stacks);
  if (problem) return <Problem {...problem} />;
  const run = query.data;
  if (run === undefined)
    return (
      <Page title={importPageTexts.title}>
        <Skeleton width={320} />
      </Page>
    );
  return (
    <Page title={titleOf(run)} lead={<span className={styles['source']}>{run.source}</span>}>
      <FactList>
        <FactRow name={importPageTexts.result}>
          <RunBadges run={run} />
        </FactRow>
        <FactRow name={came[run.kind] ?? importPageTexts.stacks}>{countsOf(run)}</FactRow>
        <FactRow name={importPageTexts.started}>
          <Time at={run.startedAt} />
        </FactRow>
        <FactRow name={importPageTexts.ended}>
          {run.endedAt === null ? importPageTexts.stillRunning : <Time at={run.endedAt} />}
        </FactRow>
        <FactRow name={importPageTexts.runBy}>{importPageTexts.runOnServer(run.by)}</FactRow>
        {run.kind === 'import' ? (
          <FactRow name={importPageTexts.compared}>
            {run.verified === null ? importPageTexts.notYet : <Time at={run.verified.at} />}
          </FactRow>
        ) : null}
      </FactList>
      <Section title={importPageTexts.stacks} lead={importPageTexts.lead}>
        <Table
          {...pagedList(stacks)}
          label={importPageTexts.stacks}
          columns={columnsOf(organization, run)}
          keyOf={({ name }) => name}
          empty={
            <Empty title={importPageTexts.nothingNew} icon={<PackageOpen size={20} />}>
              <p>{importPageTexts.nothingNewHint}</p>
              <Code>{`holdfast import --from ${run.source} --organization ${organization} --verify`}</Code>
            </Empty>
          }
        />
      </Section>
    </Page>
  );
}

const came: Readonly<Record<string, string>> = {
  import: importPageTexts.imported,
  verify: importPageTexts.equal,
  rollback: importPageTexts.deleted,
};
const noteNames: Readonly<Record<string, string>> = {
  import: importPageTexts.skipped,
  verify: importPageTexts.differences,
  rollback: importPageTexts.kept,
};

function columnsOf(organization: string, { kind }: ImportRun): Column<ImportedStack>[] {
  return [
    {
      name: importPageTexts.stack,
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
      name: came[kind] ?? importPageTexts.count,
      cell: ({ previews, versions }) =>
        importTexts.versions(versions) + (previews > 0 ? `, ${importTexts.previews(previews)}` : ''),
    },
    ...(kind === 'import' ? [{ name: importPageTexts.secrets, cell: secretsOf }] : []),
    {
      name: noteNames[kind] ?? importPageTexts.notes,
      cell: ({ notes, quarantine }) =>
        notes.length === 0 && quarantine === null ? (
          importPageTexts.nothing
        ) : (
          <ul className={styles['notes']}>
            {quarantine === null ? null : (
              <li>
                <Badge tone="warning">{importPageTexts.quarantine}</Badge> {importPageTexts.quarantined(quarantine)}
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

/** Where the secrets of the stack are decrypted. */
function secretsOf({ secretsProvider }: ImportedStack): string {
  if (secretsProvider === null) return importPageTexts.noSecrets;
  return secretsProvider === 'service'
    ? importPageTexts.secretsOfService
    : importPageTexts.secretsAsBefore(secretsProvider);
}
