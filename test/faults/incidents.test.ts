import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { deploymentOf, RawClient, type Update } from '../../bench/support/raw-client.ts';
import { type Cluster, startCluster } from '../../testkit/cluster.ts';
import { until } from '../../testkit/until.ts';
import { firingAlerts, panelsOf, runbookOf, type Scrape, scrape } from './support/incident-metrics.ts';
import { PatientClient } from './support/patient-client.ts';
import { S3Gate } from './support/s3-gate.ts';
import { openWayToPostgres, type WayToPostgres } from './support/way-to-postgres.ts';

// Incidents, rehearsed: which alert tells of each, after how many minutes, which panel shows it, and what the runbook says.

const saveMs = 5_000;
let cluster: Cluster;
let gate: S3Gate;
let way: WayToPostgres;
let urls: string[];
let redis: Redis;

beforeAll(async () => {
  gate = await S3Gate.open();
  const throughGate = (endpoint: string) => {
    gate.leadTo(endpoint);
    return { HOLDFAST_S3_ENDPOINT: gate.url };
  };
  cluster = await startCluster({
    ...{ apis: 2, prepared: true, workers: 1, s3Kind: 'versitygw' },
    settings: { HOLDFAST_INLINE_BYTES: '4096', HOLDFAST_DIRECT_BYTES: '16384' },
    databaseThrough: async (url) => {
      way = await openWayToPostgres(url);
      return url;
    },
    apiSettings: (index, endpoint) => ({
      ...throughGate(endpoint),
      ...(index === 1 ? { HOLDFAST_DATABASE_URL: way.url } : {}),
    }),
    workerSettings: (_, endpoint) => throughGate(endpoint),
  });
  urls = [...cluster.apiManagementUrls, ...cluster.workerUrls];
  redis = new Redis(cluster.redisUrl);
}, 600_000);
afterAll(async () => {
  redis?.disconnect();
  await cluster?.stop();
  await way?.[Symbol.asyncDispose]();
  await gate?.[Symbol.asyncDispose]();
});

interface Save {
  readonly update: Update;
  readonly document: Buffer;
}

/** Starts updates with a small and a large state. */
async function startUpdates(name: string): Promise<Save[]> {
  const client = new PatientClient(cluster.url, cluster.token);
  return Promise.all(
    [2_000, 100_000].map(async (size) => {
      const stack = await client.createStack(cluster.organization, 'incidents', `${name}-${size}`);
      return { update: await client.startUpdate(stack), document: deploymentOf(size) };
    }),
  );
}

/** Saves their states for some time, whatever the responses. */
async function save(saves: readonly Save[], ms: number): Promise<void> {
  const client = new RawClient(cluster.url, cluster.token, { timeoutMs: 20_000 });
  const until = performance.now() + ms;
  const work = async ({ document, update }: Save): Promise<void> => {
    while (performance.now() < until) {
      await client
        .once('PATCH', `${update.path}/checkpoint`, document, { auth: update.lease, gzip: true })
        .catch(() => sleep(200));
    }
  };
  await Promise.all(saves.map(work));
}

interface Incident {
  readonly name: string;
  readonly begin: () => Promise<unknown> | unknown;
  readonly end: () => Promise<unknown> | unknown;
  /** Seen in the metrics once the incident has begun. */
  readonly isSeen?: (now: Scrape, before: Scrape) => boolean;
  /** The alert that names the cause, and after how many minutes at the latest it fires. */
  readonly alert: string;
  readonly minutes: number;
  /** The panel that shows it, by its title. */
  readonly panel: string;
  /** What the section of the runbook that the alert names must say. */
  readonly advice: RegExp;
}

const readValue = (now: Scrape, url: string | undefined, series: string) => now.get(url ?? '')?.get(series);

/** Writes to the blob store that took more than 5 s. */
const countSlowPuts = (now: Scrape): number =>
  urls
    .map(
      (url) =>
        (readValue(now, url, 'holdfast_blob_seconds_count{op="put"}') ?? 0) -
        (readValue(now, url, 'holdfast_blob_seconds_bucket{le="5",op="put"}') ?? 0),
    )
    .reduce((sum, each) => sum + each, 0);

const incidents: readonly Incident[] = [
  {
    name: 'worker',
    begin: () => cluster.workers[0]?.pause(),
    end: () => cluster.workers[0]?.resume(),
    ...{ alert: 'HoldfastNoWorker', minutes: 3, panel: 'Running processes, by role and version' },
    advice: /no worker runs \(see their last log lines\)/,
  },
  {
    name: 'blobs',
    begin: () => Object.assign(gate, { weather: 'slow', slowMs: 8_000 }),
    end: () => Object.assign(gate, { weather: 'fine' }),
    isSeen: (now, before) => countSlowPuts(now) > countSlowPuts(before),
    ...{ alert: 'HoldfastBlobStoreSlow', minutes: 11, panel: 'Duration p99, by operation' },
    advice: /Compare `holdfast_blob_seconds` of the processes/,
  },
  {
    name: 'redis',
    begin: async () => {
      const used = Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
      await redis.config('SET', 'maxmemory', String(Math.round(used * 1.02)));
    },
    end: () => redis.config('SET', 'maxmemory', '0'),
    isSeen: (now) => (readValue(now, urls[0], 'holdfast_redis_memory_limit_bytes') ?? 0) > 0,
    ...{ alert: 'HoldfastRedisFull', minutes: 6, panel: 'Redis memory' },
    advice: /Raise .*`maxmemory`.*, or lower `HOLDFAST_REDIS_IN_FLIGHT_BYTES`/,
  },
  {
    name: 'replica',
    begin: () => way.vanish(),
    end: () => way.reappear(),
    isSeen: (now) => readValue(now, urls[1], 'holdfast_database_up') === 0,
    ...{ alert: 'HoldfastDatabaseUnreachable', minutes: 3, panel: 'Connections' },
    advice: /Compare `holdfast_database_up` of the processes/,
  },
];

/** The alerts that fire if what `begin` does goes on, and after how many minutes. */
async function rehearse({ begin, end, isSeen, name }: Pick<Incident, 'name'> & Partial<Incident>) {
  const saves = await startUpdates(name);
  const before = await scrape(urls);
  const begun = performance.now();
  await begin?.();
  try {
    let after: Scrape = before;
    await until(
      async () => {
        await save(saves, saveMs);
        after = await scrape(urls);
        return isSeen?.(after, before) ?? true;
      },
      'the incident is in the metrics',
      { timeoutMs: 300_000 },
    );
    return await firingAlerts(before, after, performance.now() - begun);
  } finally {
    await end?.();
  }
}

test('no alert fires while nothing is wrong', async () => {
  expect([...(await rehearse({ name: 'calm' })).keys()]).toEqual([]);
}, 600_000);

test.each(incidents)(
  '$alert tells of it, $panel shows it, and the runbook says what to do: $name',
  async (incident) => {
    const alerts = await rehearse(incident);
    const told = [...alerts].map(([each, at]) => `${each} after ${at} min`);
    process.stderr.write(`incident ${incident.name}: ${told.join(', ')}\n`);
    expect(alerts.get(incident.alert) ?? Number.POSITIVE_INFINITY).toBeLessThanOrEqual(incident.minutes);
    expect(panelsOf(incident.alert)).toContain(incident.panel);
    expect(runbookOf(incident.alert)).toMatch(incident.advice);
  },
  600_000,
);
