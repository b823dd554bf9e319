import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import type { Cluster } from '../../testkit/cluster.ts';
import { cpuSecondsOf, memoryOf } from './measures.ts';
import { postgresCpuSecondsOf } from './process-cpu.ts';

/** The generator is this process. */
export const processKinds = ['API', 'workers', 'Postgres', 'Redis', 'S3', 'proxy', 'generator'] as const;
export type ProcessKind = (typeof processKinds)[number];
export type CpuSeconds = Readonly<Record<ProcessKind, number>>;

/** Returns the CPU time of each kind of process so far, in seconds (Linux). */
export async function cpuOf(cluster: Cluster): Promise<CpuSeconds> {
  const sum = async (pids: readonly number[]): Promise<number> =>
    (await Promise.all(pids.map(cpuSecondsOf))).reduce((total, seconds) => total + seconds, 0);
  const { user, system } = process.cpuUsage();
  return {
    API: await sum(cluster.apis.map(({ pid }) => pid)),
    workers: await sum(cluster.workers.map(({ pid }) => pid)),
    Postgres: cluster.postgres ? await postgresCpuSecondsOf(cluster.postgres.pid) : Number.NaN,
    Redis: await sum([cluster.redis.pid]),
    S3: await sum([cluster.s3.pid]),
    proxy: await sum([cluster.proxy.pid]),
    generator: (user + system) / 1e6,
  };
}

/** Returns how many cores each kind of process used on average between two measurements. */
export function coresBetween(before: CpuSeconds, after: CpuSeconds, seconds: number): CpuSeconds {
  const cores = processKinds.map((kind) => [kind, (after[kind] - before[kind]) / seconds] as const);
  return Object.fromEntries(cores) as CpuSeconds;
}

/** In memory and on disk, in MB. */
export interface Kept {
  /** The largest API replica, the largest worker. */
  readonly api: number;
  readonly worker: number;
  readonly redis: number;
  /** All tables and indexes. */
  readonly database: number;
  readonly writeAheadLog: number;
  readonly blobs: number;
}

/** Measures memory and disk now. */
export async function keptBy(cluster: Cluster): Promise<Kept> {
  const largest = async (pids: readonly number[]): Promise<number> =>
    Math.max(...(await Promise.all(pids.map(memoryOf))).map(({ now }) => now));
  const [row] = await queryCluster<{ database: number; log: number }>(
    cluster,
    `select pg_database_size(current_database())::float8 as database, (select sum(size) from pg_ls_waldir())::float8 as log`,
  );
  return {
    api: await largest(cluster.apis.map(({ pid }) => pid)),
    worker: await largest(cluster.workers.map(({ pid }) => pid)),
    redis: await largest([cluster.redis.pid]),
    database: (row?.database ?? Number.NaN) / 1e6,
    writeAheadLog: (row?.log ?? Number.NaN) / 1e6,
    blobs: (await bytesIn(cluster.s3Access.dataDir)) / 1e6,
  };
}

export async function queryCluster<T extends pg.QueryResultRow>(cluster: Cluster, statement: string): Promise<T[]> {
  // Sessions without a name keep events from being packed.
  const client = new pg.Client({ connectionString: cluster.databaseUrl, application_name: 'bench' });
  await client.connect();
  try {
    return (await client.query<T>(statement)).rows;
  } finally {
    await client.end();
  }
}

async function bytesIn(folder: string): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    // A sweep may just have deleted it.
    const found = await stat(path.join(entry.parentPath, entry.name)).catch(() => null);
    bytes += found?.size ?? 0;
  }
  return bytes;
}
