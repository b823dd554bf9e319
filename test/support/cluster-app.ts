import { afterAll, test } from '@jest/globals';
import { type RedisServer, startRedisServer } from '../../e2e/support/redis-server.ts';
import { type S3Server, startS3Server } from '../../e2e/support/s3-server.ts';
import { createApiContext } from '../../src/api/api-context.ts';
import { createClusterContext, createClusterDispatcher } from '../../src/shared/cluster-context.ts';
import { S3BlobStore } from '../../src/shared/platform/blobs/s3-blob-store.ts';
import { parseConfig } from '../../src/shared/platform/config/config.ts';
import { startClusterJobs } from '../../src/workers/main.ts';
import { type RoleParts, type Roles, startRolesBy, type TestDatabase } from './test-app.ts';
import { hasTools } from './tools.ts';

export interface ClusterOptions {
  /** On the settings of every app, which come after. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Blobs in an S3 server rather than in files. */
  readonly s3?: 'minio' | 'versitygw';
}

/** The servers that the apps of a test file share. */
export interface Cluster {
  readonly redis: RedisServer;
  readonly s3: S3Server | null;
  /** Redis as the apps on this database see it. */
  redisUrl(database: TestDatabase): string;
  stop(): Promise<void>;
}

/** Enough for all databases of a test file. */
const redisDatabases = 500;

/**
 * From here on `createTestApp` starts an API and a worker that meet in a Redis of this test file, and every body goes through
 * the queue, however small. Call `stop` after everything else.
 */
export async function startCluster({ settings = {}, s3: kind }: ClusterOptions = {}): Promise<Cluster> {
  const redis = await startRedisServer({ extraArgs: ['--databases', String(redisDatabases)] });
  const s3 = kind === undefined ? null : await startS3Server(kind);
  const databases: string[] = [];
  let buckets = 0;
  // Each Postgres database with a Redis database of its own: jobs must not meet workers of another.
  const redisUrl = ({ url }: TestDatabase): string => {
    if (!databases.includes(url)) databases.push(url);
    return `${redis.url}/${databases.indexOf(url)}`;
  };

  const start = async ({ settings: own, database, masterKeys, logger, overrides }: RoleParts): Promise<Roles> => {
    const config = parseConfig({
      HOLDFAST_DIRECT_BYTES: '1',
      HOLDFAST_REDIS_URL: redisUrl(database),
      HOLDFAST_MASTER_KEYS: masterKeys,
      ...settings,
      ...own,
    });
    const bucket = `bucket-${++buckets}`;
    if (s3) await s3.createBucket(bucket);
    // Each process with a store of its own, as it has a pool of its own.
    const openBlobs = () => (s3 ? { blobs: openS3(s3, bucket) } : {});
    const api = await createClusterContext(config, logger, { ...openBlobs(), ...overrides });
    const worker = await createClusterContext(config, logger, { ...openBlobs(), ...overrides });
    startClusterJobs(worker);
    const context = createApiContext(api, createClusterDispatcher(api));
    return { context, close: () => worker.lifecycle.close() };
  };
  startRolesBy(start);
  const stop = async (): Promise<void> => {
    await redis.stop();
    await s3?.stop();
  };
  return { redis, s3, redisUrl, stop };
}

function openS3({ endpoint, region, accessKeyId, secretAccessKey }: S3Server, bucket: string): S3BlobStore {
  const where = { endpoint, region, accessKeyId, secretAccessKey, bucket, forcePathStyle: true };
  return new S3BlobStore({ ...where, requestTimeoutMs: 10_000 });
}

/** Runs the tests of another file in a cluster; leaves them out where its servers cannot be had. */
export async function runInCluster(options: ClusterOptions, importTests: () => Promise<unknown>): Promise<void> {
  if (!(await hasTools(['redis-server', ...(options.s3 ? [options.s3] : [])]))) {
    test.skip('in a cluster', () => {});
    return;
  }
  const cluster = await startCluster(options);
  await importTests();
  // Registered last, so that it comes after the apps of those tests are closed.
  afterAll(() => cluster.stop());
}
