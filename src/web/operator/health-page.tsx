import { useQuery } from '@tanstack/react-query';
import { CircleCheck, CircleX, TriangleAlert } from 'lucide-react';
import { useEffect } from 'react';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import type { OperatorHealth } from '../platform/app/procedure-types.ts';
import { every, trpc } from '../platform/app/trpc.ts';
import { pageTexts } from '../platform/texts.tsx';
import { Badge } from '../platform/ui/badge.tsx';
import { byteText, msText } from '../platform/ui/byte-text.ts';
import { Page, Section } from '../platform/ui/page.tsx';
import { Skeleton } from '../platform/ui/skeleton.tsx';
import { type Column, Table } from '../platform/ui/table.tsx';
import { Since, Time } from '../platform/ui/time.tsx';
import { AttentionNotice } from './attention-notice.tsx';
import styles from './health-page.module.css';
import { healthTexts } from './texts.tsx';

const refreshMs = 10_000;

type Part = Pick<OperatorHealth['blobs'], 'isUp' | 'latencyMs' | 'lastFailure'>;
type Process = OperatorHealth['processes'][number];

/** Running processes, and the services they depend on. */
export function HealthPage() {
  const query = useQuery(trpc.operator.health.queryOptions(undefined, { refetchInterval: every(refreshMs) }));
  useEffect(() => {
    document.title = pageTexts.tabTitle(pageTexts.health);
  }, []);
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const { data } = query;
  return (
    <Page title={healthTexts.title} lead={healthTexts.lead}>
      <AttentionNotice health={data} />
      <ul className={styles['parts']} aria-busy={data === undefined}>
        <PartItem name={healthTexts.database} part={data?.database} facts={data && databaseFacts(data)} />
        <PartItem
          name={healthTexts.blobStore}
          part={data?.blobs}
          facts={data && [data.blobs.kind === 's3' ? healthTexts.s3 : healthTexts.files]}
        />
        {data?.queue === null ? (
          <li className={styles['part']}>
            <h2>{healthTexts.redis}</h2>
            <p className={styles['facts']}>{healthTexts.redisNotUsed}</p>
          </li>
        ) : (
          <PartItem name={healthTexts.redis} part={data?.queue} facts={[]} />
        )}
      </ul>
      <Section title={healthTexts.processes} lead={healthTexts.processesLead}>
        <Table
          label={healthTexts.processes}
          columns={columns}
          items={data?.processes}
          keyOf={({ id }) => id}
          empty={<p className={styles['facts']}>{healthTexts.noProcesses}</p>}
        />
      </Section>
    </Page>
  );
}

function databaseFacts({ database, pool }: OperatorHealth): string[] {
  const { connections, maxConnections, version } = database;
  return [
    ...(version === undefined ? [] : [healthTexts.versionOf(version)]),
    ...(connections === undefined ? [] : [healthTexts.connections(connections, maxConnections)]),
    healthTexts.inUse(pool.acquired, pool.waiting),
  ];
}

function PartItem({
  facts = [],
  name,
  part,
}: {
  readonly name: string;
  readonly part: Part | undefined;
  readonly facts?: readonly string[] | undefined;
}) {
  return (
    <li className={styles['part']}>
      <h2>{name}</h2>
      {part === undefined ? (
        <Skeleton width={120} height={20} />
      ) : (
        <>
          <p className={styles['state']}>
            {part.isUp ? (
              <Badge tone="success" icon={<CircleCheck aria-hidden="true" />}>
                {healthTexts.responds}
              </Badge>
            ) : (
              <Badge tone="failure" icon={<CircleX aria-hidden="true" />}>
                {healthTexts.notResponding}
              </Badge>
            )}
            {part.latencyMs === null ? null : (
              <span className={styles['latency']}>{healthTexts.answeredIn(msText(part.latencyMs))}</span>
            )}
          </p>
          {facts.map((fact) => (
            <p key={fact} className={styles['facts']}>
              {fact}
            </p>
          ))}
          {part.lastFailure === null ? null : (
            <p className={styles['failure']}>
              {healthTexts.failed(<Time at={part.lastFailure.at} />, part.lastFailure.message)}
            </p>
          )}
        </>
      )}
    </li>
  );
}

const roles: Readonly<Record<string, string>> = {
  server: healthTexts.server,
  api: healthTexts.api,
  worker: healthTexts.worker,
};
/** Above this, other requests wait noticeably. */
const slowLoopMs = 200;

const columns: readonly Column<Process>[] = [
  {
    name: healthTexts.process,
    isTitle: true,
    cell: ({ host, pid, role }) => (
      <span className={styles['process']}>
        {roles[role] ?? role}
        <span className={styles['host']}>
          {host} <span className={styles['pid']}>{pid}</span>
        </span>
      </span>
    ),
  },
  { name: healthTexts.version, cell: ({ version }) => <code>{version}</code> },
  {
    name: healthTexts.lastSeen,
    cell: ({ isLate, seenAt }) =>
      isLate ? (
        <Badge tone="failure" icon={<TriangleAlert aria-hidden="true" />}>
          {healthTexts.noHeartbeatFor(<Since at={seenAt} />)}
        </Badge>
      ) : (
        <Time at={seenAt} />
      ),
  },
  { name: healthTexts.up, align: 'right', cell: ({ startedAt }) => <Since at={startedAt} /> },
  { name: healthTexts.memory, align: 'right', cell: ({ rssBytes }) => byteText(rssBytes) },
  { name: healthTexts.cpu, align: 'right', cell: ({ cpu }) => `${Math.round(cpu * 100)} %` },
  {
    name: healthTexts.longestDelay,
    align: 'right',
    cell: ({ loopMs }) => <span className={loopMs >= slowLoopMs ? styles['slow'] : undefined}>{msText(loopMs)}</span>,
  },
];
