import { startCluster } from '../../../testkit/cluster.ts';
import { joinUrls, type PostgresPair } from '../../../testkit/postgres-pair.ts';
import { tuned } from '../../../testkit/tuned.ts';
import { until } from '../../../testkit/until.ts';

/** A cluster of few processes that stores small documents in the bucket, too, and notes which of them end by themselves. */
export async function startSmallCluster(
  databaseUrl: string,
  { apis = 1, crashes }: { apis?: number; crashes: string[] },
) {
  return await startCluster({
    apis,
    workers: 1,
    s3Kind: 'versitygw',
    databaseUrl,
    settings: {
      HOLDFAST_INLINE_BYTES: '4096',
      HOLDFAST_DIRECT_BYTES: '16384',
      ...tuned({ sweepSeconds: 2, eventArchiveDelaySeconds: 4, databaseConnectMs: 30_000 }),
    },
    onCrash: (part) => crashes.push(`${part.name}:\n${part.log.slice(-2_000)}`),
  });
}

/** One URL for both servers of a pair, which leads to the primary. */
export function urlOfPair({ primaryUrl, standbyUrl }: PostgresPair): string {
  return joinUrls(primaryUrl, standbyUrl, '?target_session_attrs=read-write');
}

interface Counted {
  readonly counts: { readonly acknowledged: number };
}

/** Writes of these pipelines that a server has acknowledged. */
export function countAcknowledged(pipelines: readonly Counted[]): number {
  return pipelines.reduce((sum, { counts }) => sum + counts.acknowledged, 0);
}

/** Waits until the pipelines have written for some time. */
export async function goOn(pipelines: readonly Counted[]): Promise<void> {
  const from = countAcknowledged(pipelines);
  await until(() => countAcknowledged(pipelines) > from + 100, 'the pipelines continue', { timeoutMs: 300_000 });
}
