import { afterAll, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { createApiContext } from '../../src/api/create-api-context.ts';
import {
  type ClusterContext,
  type ClusterOverrides,
  createClusterContext,
  createClusterDispatcher,
} from '../../src/shared/cluster-context.ts';
import { S3BlobStore } from '../../src/shared/platform/blobs/s3-blob-store.ts';
import { startClusterJobs } from '../../src/workers/main.ts';
import { type RedisServer, startRestrictedRedis } from '../../testkit/redis-server.ts';
import { type S3Server, startS3Server } from '../../testkit/s3-server.ts';
import { type RoleParts, type Roles, startRolesBy, type TestDatabase } from './test-app.ts';
import { configOf, type TestSettings } from './test-settings.ts';
import { hasTools } from './tools.ts';

export interface ClusterOptions {
  /** Overrides the settings of every app. */
  readonly settings?: TestSettings;
  /** Blobs in an S3 server instead of files. */
  readonly s3?: 'minio' | 'versitygw';
  /** All attempts of the default take 25 s. */
  readonly jobAttempts?: number;
}

export interface Cluster {
  readonly redis: RedisServer;
  readonly s3: S3Server | null;
  /** Workers, in the order of their start. */
  readonly workers: readonly ClusterContext[];
  /** Redis as seen by the apps on this database. */
  redisUrl(database: TestDatabase): string;
  /** The same, for a user with all rights. */
  redisAdminUrl(database: TestDatabase): string;
  stop(): Promise<void>;
}

/** Enough for all databases of a test file. */
const redisDatabases = 500;

/**
 * Makes `createTestApp` start an API and a worker that share a Redis of this test file, and send every body through the queue, however
 * small. Call `stop` after everything else.
 */
export async function startAppCluster({ jobAttempts, settings = {}, s3: kind }: ClusterOptions = {}): Promise<Cluster> {
  const redis = await startRestrictedRedis({ extraArgs: ['--databases', String(redisDatabases)] });
  const s3 = kind === undefined ? null : await startS3Server(kind);
  const databases: string[] = [];
  const workers: ClusterContext[] = [];
  let buckets = 0;
  // Each Postgres database has its own Redis database: jobs must not reach the workers of another one.
  const numberOf = ({ url }: TestDatabase): number => {
    if (!databases.includes(url)) databases.push(url);
    return databases.indexOf(url);
  };
  const redisUrl = (database: TestDatabase): string => `${redis.url}/${numberOf(database)}`;
  const redisAdminUrl = (database: TestDatabase): string => `${redis.adminUrl}/${numberOf(database)}`;

  startRolesBy(async (parts) => {
    const bucket = `bucket-${++buckets}`;
    if (s3) await s3.createBucket(bucket);
    // Each process has its own store, as it has its own pool.
    const ownParts = () => ({
      ...(s3 ? { blobs: openS3(s3, bucket) } : {}),
      ...(jobAttempts === undefined ? {} : { jobAttempts }),
    });
    const { worker, ...roles } = await startRoles(
      redisUrl(parts.database),
      { ...parts, settings: { ...settings, ...parts.settings } },
      ownParts,
    );
    workers.push(worker);
    return roles;
  });
  const stop = async (): Promise<void> => {
    try {
      await assertNothingDenied(redis);
    } finally {
      await redis.stop();
    }
    await s3?.stop();
  };
  return { redis, s3, workers, redisUrl, redisAdminUrl, stop };
}

/** Makes `createTestApp` start an API and a worker that share this Redis; otherwise as above, with files as blobs. */
export function startAppsOn(redisUrl: string, settings: TestSettings = {}): void {
  startRolesBy((parts) => startRoles(redisUrl, { ...parts, settings: { ...settings, ...parts.settings } }));
}

async function startRoles(
  redisUrl: string,
  { settings, masterKeys, logger, overrides }: RoleParts,
  ownParts: () => ClusterOverrides = () => ({}),
): Promise<Roles & { readonly worker: ClusterContext }> {
  const config = configOf({
    HOLDFAST_DIRECT_BYTES: '1',
    HOLDFAST_REDIS_URL: redisUrl,
    HOLDFAST_MASTER_KEYS: masterKeys,
    ...settings,
  });
  const api = await createClusterContext(config, logger, { ...ownParts(), ...overrides });
  const worker = await createClusterContext(config, logger, { ...ownParts(), ...overrides });
  startClusterJobs(worker);
  const context = await createApiContext(api, createClusterDispatcher(api));
  return { context, worker, close: () => worker.lifecycle.close() };
}

/** Fails unless the user of Holdfast had all the rights that it needed. A Redis that was stopped or restarted has no record of this. */
async function assertNothingDenied({ adminUrl }: RedisServer): Promise<void> {
  const admin = new Redis(adminUrl, { lazyConnect: true, retryStrategy: () => null });
  admin.on('error', () => {});
  try {
    await admin.connect();
  } catch {
    return;
  }
  const denied = await admin.call('ACL', 'LOG', '100');
  admin.disconnect();
  if ((denied as unknown[]).length > 0) throw new Error(`Redis has denied something: ${JSON.stringify(denied)}`);
}

function openS3({ endpoint, region, accessKeyId, secretAccessKey }: S3Server, bucket: string): S3BlobStore {
  const where = { endpoint, region, accessKeyId, secretAccessKey, bucket, forcePathStyle: true };
  return new S3BlobStore({ ...where, requestTimeoutMs: 60_000, connectTimeoutMs: 60_000 });
}

/** Skips the tests where the servers are not available. */
export async function runInCluster(options: ClusterOptions, importTests: () => Promise<unknown>): Promise<void> {
  if (!(await hasTools(['redis-server', ...(options.s3 ? [options.s3] : [])]))) {
    test.skip('in a cluster', () => {});
    return;
  }
  const cluster = await startAppCluster(options);
  await importTests();
  // Registered last, so that it runs after the apps of those tests are closed.
  afterAll(() => cluster.stop());
}
