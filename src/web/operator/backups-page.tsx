import { useQuery } from '@tanstack/react-query';
import { Archive } from 'lucide-react';
import { useEffect } from 'react';
import type { OperatorBackup } from '../platform/app/contract.ts';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import { every, trpc } from '../platform/app/trpc.ts';
import { byteText } from '../platform/ui/byte-text.ts';
import { Empty } from '../platform/ui/empty.tsx';
import { Page, Section } from '../platform/ui/page.tsx';
import { StatTiles } from '../platform/ui/stat-tiles.tsx';
import { type Column, Table } from '../platform/ui/table.tsx';
import { Time } from '../platform/ui/time.tsx';
import styles from './queues-page.module.css';

const refreshMs = 10_000;

/** Scheduled backups, and when one was last verified. */
export function BackupsPage() {
  const query = useQuery(trpc.operator.backups.queryOptions(undefined, { refetchInterval: every(refreshMs) }));
  useEffect(() => {
    document.title = 'Backups - Holdfast';
  }, []);
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const { data } = query;
  const newest = data?.backups[0];
  const verified = data?.backups
    .flatMap(({ verifiedAt }) => verifiedAt ?? [])
    .sort()
    .at(-1);
  const when = (at: string | null | undefined) => data && (at ? <Time at={at} /> : 'never');
  const { createFailure, verification, plan, verifyFailure } = data ?? {};
  return (
    <Page
      title="Backups"
      lead={
        plan ? `In ${plan.location}, by the schedule ${plan.schedule} (UTC). The newest ${plan.keep} are kept.` : ''
      }
    >
      <StatTiles
        statistics={[
          {
            name: 'Last backup',
            value: when(newest?.takenAt),
            tone: createFailure ? 'failure' : undefined,
            note: createFailure ? 'the last attempt failed' : undefined,
          },
          {
            name: 'Last verified',
            value: when(verified),
            tone: verifyFailure ? 'failure' : undefined,
            note: verifyFailure ? 'the last attempt failed' : undefined,
          },
          { name: 'Size of the newest', value: data && (newest ? byteText(newest.bytes) : '–') },
          { name: 'Next backup', value: data && (plan?.nextAt ? <Time at={plan.nextAt} /> : '–') },
        ]}
      />
      {createFailure || verifyFailure || verification?.skipped ? (
        <Section title="Problems">
          <ul className={styles['fault']}>
            {createFailure ? (
              <li>
                Backup, <Time at={createFailure.at} />: {createFailure.error}
              </li>
            ) : null}
            {verifyFailure ? (
              <li>
                Verification, <Time at={verifyFailure.at} />: {verifyFailure.error}
              </li>
            ) : null}
            {verification?.skipped ? <li>Not verified by workers: {verification.skipped}</li> : null}
          </ul>
        </Section>
      ) : null}
      <Section title="Backups" lead="Backups share blobs, so together they need less space than the sizes add up to.">
        <Table
          label="Backups"
          columns={columns}
          items={data?.backups}
          keyOf={({ id }) => id}
          empty={
            <Empty title="No scheduled backups" icon={<Archive size={20} />}>
              <p>
                Set <code>HOLDFAST_BACKUP_TO</code>, and a worker makes one each day.
              </p>
            </Empty>
          }
        />
      </Section>
    </Page>
  );
}

const columns: readonly Column<OperatorBackup>[] = [
  { name: 'Backup', isTitle: true, cell: ({ id }) => <code>{id}</code> },
  { name: 'As of', cell: ({ takenAt }) => <Time at={takenAt} /> },
  { name: 'Size', align: 'right', cell: ({ bytes }) => byteText(bytes) },
  { name: 'Blobs', align: 'right', isMinor: true, cell: ({ blobs }) => blobs.toLocaleString() },
  {
    name: 'Missing blobs',
    align: 'right',
    isMinor: true,
    cell: ({ missingBlobs }) => missingBlobs.toLocaleString(),
  },
  { name: 'Encrypted', isMinor: true, cell: ({ isEncrypted }) => (isEncrypted ? 'yes' : 'no') },
  {
    name: 'Verified',
    align: 'right',
    cell: ({ verifiedAt }) => (verifiedAt === null ? 'never' : <Time at={verifiedAt} />),
  },
];
