import { useQuery } from '@tanstack/react-query';
import { CircleCheck, CircleX, TriangleAlert } from 'lucide-react';
import { useEffect } from 'react';
import type { OperatorHealth } from '../platform/app/contract.ts';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import { every, trpc } from '../platform/app/trpc.ts';
import { Badge } from '../platform/ui/badge.tsx';
import { byteText, msText } from '../platform/ui/byte-text.ts';
import { Page, Section } from '../platform/ui/page.tsx';
import { Skeleton } from '../platform/ui/skeleton.tsx';
import { type Column, Table } from '../platform/ui/table.tsx';
import { Since, Time } from '../platform/ui/time.tsx';
import { AttentionNotice } from './attention-notice.tsx';
import styles from './health-page.module.css';

const refreshMs = 10_000;

type Part = Pick<OperatorHealth['blobs'], 'isUp' | 'latencyMs' | 'lastFailure'>;
type Process = OperatorHealth['processes'][number];

/** Running processes, and the services they depend on. */
export function HealthPage() {
  const query = useQuery(trpc.operator.health.queryOptions(undefined, { refetchInterval: every(refreshMs) }));
  useEffect(() => {
    document.title = 'Health - Holdfast';
  }, []);
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const { data } = query;
  return (
    <Page title="Health" lead="The services, as reached by the process that serves this page, and all processes.">
      <AttentionNotice health={data} />
      <ul className={styles['parts']} aria-busy={data === undefined}>
        <PartItem name="Postgres" part={data?.database} facts={data && databaseFacts(data)} />
        <PartItem name="Blob store" part={data?.blobs} facts={data && [data.blobs.kind === 's3' ? 'S3' : 'Files']} />
        {data?.queue === null ? (
          <li className={styles['part']}>
            <h2>Redis</h2>
            <p className={styles['facts']}>Not used: jobs run in the process that creates them.</p>
          </li>
        ) : (
          <PartItem name="Redis" part={data?.queue} facts={[]} />
        )}
      </ul>
      <Section
        title="Processes"
        lead="Each process sends a heartbeat every ten seconds. A stopped process is shown for an hour."
      >
        <Table
          label="Processes"
          columns={columns}
          items={data?.processes}
          keyOf={({ id }) => id}
          empty={<p className={styles['facts']}>No process has reported yet.</p>}
        />
      </Section>
    </Page>
  );
}

function databaseFacts({ database, pool }: OperatorHealth): string[] {
  const { connections, maxConnections, version } = database;
  return [
    ...(version === undefined ? [] : [`Version ${version}`]),
    ...(connections === undefined ? [] : [`${connections} of ${maxConnections} connections`]),
    `${pool.acquired} in use here${pool.waiting === 0 ? '' : `, ${pool.waiting} callers wait`}`,
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
                Responds
              </Badge>
            ) : (
              <Badge tone="failure" icon={<CircleX aria-hidden="true" />}>
                Does not respond
              </Badge>
            )}
            {part.latencyMs === null ? null : <span className={styles['latency']}>in {msText(part.latencyMs)}</span>}
          </p>
          {facts.map((fact) => (
            <p key={fact} className={styles['facts']}>
              {fact}
            </p>
          ))}
          {part.lastFailure === null ? null : (
            <p className={styles['failure']}>
              Failed <Time at={part.lastFailure.at} />: {part.lastFailure.message}
            </p>
          )}
        </>
      )}
    </li>
  );
}

const roles: Readonly<Record<string, string>> = { server: 'Server', api: 'API', worker: 'Worker' };
/** Above this, other requests wait noticeably. */
const slowLoopMs = 200;

const columns: readonly Column<Process>[] = [
  {
    name: 'Process',
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
  { name: 'Version', cell: ({ version }) => <code>{version}</code> },
  {
    name: 'Last seen',
    cell: ({ isLate, seenAt }) =>
      isLate ? (
        <Badge tone="failure" icon={<TriangleAlert aria-hidden="true" />}>
          No heartbeat for <Since at={seenAt} />
        </Badge>
      ) : (
        <Time at={seenAt} />
      ),
  },
  { name: 'Up', align: 'right', cell: ({ startedAt }) => <Since at={startedAt} /> },
  { name: 'Memory', align: 'right', cell: ({ rssBytes }) => byteText(rssBytes) },
  { name: 'CPU', align: 'right', cell: ({ cpu }) => `${Math.round(cpu * 100)} %` },
  {
    name: 'Longest event loop delay',
    align: 'right',
    cell: ({ loopMs }) => <span className={loopMs >= slowLoopMs ? styles['slow'] : undefined}>{msText(loopMs)}</span>,
  },
];
