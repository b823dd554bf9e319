import { useQuery } from '@tanstack/react-query';
import { Archive } from 'lucide-react';
import { useEffect } from 'react';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import type { OperatorBackup } from '../platform/app/procedure-types.ts';
import { every, trpc } from '../platform/app/trpc.ts';
import { pageTexts } from '../platform/texts.tsx';
import { byteText } from '../platform/ui/byte-text.ts';
import { Empty } from '../platform/ui/empty.tsx';
import { numberLocale } from '../platform/ui/locale.ts';
import { Page, Section } from '../platform/ui/page.tsx';
import { StatTiles } from '../platform/ui/stat-tiles.tsx';
import { type Column, Table } from '../platform/ui/table.tsx';
import { Time } from '../platform/ui/time.tsx';
import styles from './job-queues-page.module.css';
import { backupTexts } from './texts.tsx';

const refreshMs = 10_000;

/** Scheduled backups, and when one was last verified. */
export function BackupsPage() {
  const query = useQuery(trpc.operator.backups.queryOptions(undefined, { refetchInterval: every(refreshMs) }));
  useEffect(() => {
    document.title = pageTexts.tabTitle(pageTexts.backups);
  }, []);
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const { data } = query;
  const newest = data?.backups[0];
  const when = (at: string | null | undefined) => data && (at ? <Time at={at} /> : backupTexts.never);
  const { createFailure, verification, plan, unattendedSince, verifyFailure } = data ?? {};
  return (
    <Page title={backupTexts.backups} lead={plan ? backupTexts.lead(plan) : ''}>
      <StatTiles
        statistics={[
          {
            name: backupTexts.last,
            value: when(newest?.takenAt),
            tone: createFailure || unattendedSince ? 'failure' : undefined,
            note: createFailure ? backupTexts.lastFailed : unattendedSince ? backupTexts.notMade : undefined,
          },
          {
            name: backupTexts.lastVerified,
            value: when(data?.lastVerifiedAt),
            tone: verifyFailure ? 'failure' : undefined,
            note: verifyFailure ? backupTexts.lastFailed : undefined,
          },
          { name: backupTexts.sizeOfNewest, value: data && (newest ? byteText(newest.bytes) : '–') },
          { name: backupTexts.next, value: data && (plan?.nextAt ? <Time at={plan.nextAt} /> : '–') },
        ]}
      />
      {unattendedSince || createFailure || verifyFailure || verification?.skipped ? (
        <Section title={backupTexts.problems}>
          <ul className={styles['fault']}>
            {unattendedSince ? (
              <li>{backupTexts.unattended(<Time at={unattendedSince} />, <code>HOLDFAST_BACKUP_TO</code>)}</li>
            ) : null}
            {createFailure ? (
              <li>{backupTexts.createFailed(<Time at={createFailure.at} />, createFailure.error)}</li>
            ) : null}
            {verifyFailure ? (
              <li>{backupTexts.verifyFailed(<Time at={verifyFailure.at} />, verifyFailure.error)}</li>
            ) : null}
            {verification?.skipped ? <li>{backupTexts.verificationSkipped(verification.skipped)}</li> : null}
          </ul>
        </Section>
      ) : null}
      <Section title={backupTexts.backups} lead={backupTexts.shareBlobs}>
        <Table
          label={backupTexts.backups}
          columns={columns}
          items={data?.backups}
          keyOf={({ id }) => id}
          empty={
            <Empty title={backupTexts.none} icon={<Archive size={20} />}>
              <p>{backupTexts.noneHint(<code>HOLDFAST_BACKUP_TO</code>)}</p>
            </Empty>
          }
        />
      </Section>
    </Page>
  );
}

const columns: readonly Column<OperatorBackup>[] = [
  { name: backupTexts.backup, isTitle: true, cell: ({ id }) => <code>{id}</code> },
  { name: backupTexts.asOf, cell: ({ takenAt }) => <Time at={takenAt} /> },
  { name: backupTexts.size, align: 'right', cell: ({ bytes }) => byteText(bytes) },
  { name: backupTexts.blobs, align: 'right', cell: ({ blobs }) => blobs.toLocaleString(numberLocale) },
  {
    name: backupTexts.missingBlobs,
    align: 'right',
    cell: ({ missingBlobs }) => missingBlobs.toLocaleString(numberLocale),
  },
  {
    name: backupTexts.encrypted,
    cell: ({ isEncrypted }) => (isEncrypted ? backupTexts.yes : backupTexts.no),
  },
  {
    name: backupTexts.verified,
    align: 'right',
    cell: ({ verifiedAt }) => (verifiedAt === null ? backupTexts.never : <Time at={verifiedAt} />),
  },
];
