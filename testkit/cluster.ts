import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, rmSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describePostgres, preparePostgres } from './cluster-postgres.ts';
import { ClusterProcess, type ProcessSpec } from './cluster-process.ts';
import { findFixedPorts } from './fixed-ports.ts';
import { holdfastProgram } from './holdfast-program.ts';
import { copyPreparedPostgres } from './postgres-template.ts';
import { isOk, proxySpec } from './proxy-spec.ts';
import { answersPing } from './redis-server.ts';
import { type S3Access, s3Request } from './s3-request.ts';
import type { S3ServerKind } from './s3-server.ts';
import { chartServiceLinks } from './service-links.ts';
import { ensureToolchain } from './toolchain/toolchain.ts';

type Settings = Readonly<Record<string, string>>;

/** All servers listen on the loopback address. */
export interface ClusterOptions {
  apis?: number;
  /** The proxy knows them, but they do not run until they are started. */
  spareApis?: number;
  workers?: number;
  /** Port of the proxy. Default: any free port. */
  port?: number;
  s3Kind?: S3ServerKind;
  /** Node runs it for each role: the program of the other tests (default), or `dist/main.js` of a build. */
  entry?: string;
  /** An existing database, which is migrated. Default: the cluster starts its own Postgres. */
  databaseUrl?: string;
  /** Its own Postgres is a copy of one that already has all migrations, which saves time. */
  prepared?: boolean;
  /** Returns the URL that the Holdfast processes use for the database, e.g. of a proxy. */
  databaseThrough?: (databaseUrl: string) => Promise<string>;
  /** Settings of all Holdfast processes. */
  settings?: Settings;
  /** Added for one API replica. `s3Endpoint` is its default endpoint. */
  apiSettings?: (index: number, s3Endpoint: string) => Settings;
  workerSettings?: (index: number, s3Endpoint: string) => Settings;
  /** Environment of the cluster's own Postgres. */
  postgresEnv?: Settings;
  /** An empty directory. Default: a directory of the cluster. */
  s3DataDir?: string;
  /** Returns the program of an API replica or worker by its name; called at each start. Default: `entry`. */
  program?: (name: string) => string;
  /** Called when a process exits unexpectedly. */
  onCrash?: (part: ClusterProcess) => void;
  /** Called before each step of the startup, with the name of the started part. */
  onProgress?: (what: string) => void;
}

/** API replicas and workers in separate processes, behind the proxy of `deploy/proxy`. */
export interface Cluster extends AsyncDisposable {
  /** URL of the proxy. */
  readonly url: string;
  /** Token of an admin of `organization`. */
  readonly token: string;
  /** Of another admin, who can approve requests of the first one. */
  readonly reviewerToken: string;
  readonly organization: string;
  readonly databaseUrl: string;
  readonly redisUrl: string;
  readonly s3Access: S3Access & { readonly bucket: string; readonly dataDir: string };
  /** null with an existing database. */
  readonly postgres: ClusterProcess | null;
  readonly redis: ClusterProcess;
  readonly s3: ClusterProcess;
  readonly proxy: ClusterProcess;
  readonly web: ClusterProcess;
  readonly apis: readonly ClusterProcess[];
  /** With their URLs for health and metrics. */
  readonly spareApis: readonly { readonly api: ClusterProcess; readonly managementUrl: string }[];
  readonly workers: readonly ClusterProcess[];
  /** In the order of `apis`. */
  readonly apiUrls: readonly string[];
  /** For health and metrics, in the same order. */
  readonly apiManagementUrls: readonly string[];
  /** For health and metrics, in the order of `workers`. */
  readonly workerUrls: readonly string[];
  readonly parts: readonly ClusterProcess[];
  /** Stops all processes in order and removes their data. */
  stop(): Promise<void>;
}

const organization = 'dev-org';
const bucket = 'holdfast-checkpoints';
const region = 'us-east-1';
const root = join(import.meta.dirname, '..');
/** The same flags as in the image and in `npm start`. */
const nodeFlags = ['--max-semi-space-size=2', '--heap-growing-percent=50'];

/** How long a stopping replica still accepts requests, so that the proxy, which polls /readyz every second, notices. */
const drainSeconds = '3';

const run = promisify(execFile);

/** HOLDFAST_TEST_S3, or the server in the compose file. */
function clusterS3Kind(): S3ServerKind {
  const named = process.env['HOLDFAST_TEST_S3'] ?? 'versitygw';
  if (named !== 'versitygw' && named !== 'minio') throw new Error(`HOLDFAST_TEST_S3 is neither versitygw nor minio`);
  return named;
}

/** Waits until the proxy is ready. Cleans up if the startup fails. */
export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const home = await mkdtemp(join(tmpdir(), 'holdfast-cluster-'));
  const removeHome = (): void => rmSync(home, { recursive: true, force: true, maxRetries: 5 });
  process.once('exit', removeHome);
  const parts: ClusterProcess[] = [];
  const stop = async (): Promise<void> => {
    // From the outside in, so that nothing depends on a stopped process.
    for (const rank of stopRanks) {
      await Promise.all(parts.filter(({ name }) => rank.test(name)).map((part) => part.stop()));
    }
    process.off('exit', removeHome);
    await rm(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  };
  try {
    const started = await startParts(home, options, parts);
    return { ...started, parts, stop, [Symbol.asyncDispose]: stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

const stopRanks = [/^proxy$/, /^(api|web)/, /^worker/, /^(redis|s3|postgres)$/];

async function startParts(
  home: string,
  options: ClusterOptions,
  parts: ClusterProcess[],
): Promise<Omit<Cluster, 'parts' | 'stop' | typeof Symbol.asyncDispose>> {
  const {
    apis: apiCount = 3,
    spareApis: spareCount = 0,
    workers: workerCount = 2,
    s3Kind = clusterS3Kind(),
    entry = holdfastProgram,
    onProgress = () => {},
  } = options;
  const tools = await ensureToolchain({ only: ['redis-server', 'caddy', s3Kind] });
  const ports = await findFixedPorts(6 + 2 * (apiCount + spareCount) + workerCount);
  const nextPort = (): number => ports.pop() as number;
  const onCrash = options.onCrash ?? (() => {});
  const add = (spec: ProcessSpec): ClusterProcess => {
    const part = new ClusterProcess(spec, onCrash);
    parts.push(part);
    return part;
  };

  onProgress('stores');
  const isPrepared = options.prepared === true;
  if (isPrepared) await copyPreparedPostgres(home);
  const postgresSpec =
    options.databaseUrl === undefined
      ? await (isPrepared ? describePostgres : preparePostgres)(home, nextPort(), options.postgresEnv)
      : null;
  const databaseUrl = postgresSpec?.url ?? (options.databaseUrl as string);
  const postgres = postgresSpec && add(postgresSpec);
  const redisPort = nextPort();
  const redis = add(redisSpec(tools['redis-server'], home, redisPort));
  const access = {
    endpoint: `http://127.0.0.1:${nextPort()}`,
    accessKeyId: 'holdfast-cluster',
    secretAccessKey: randomBytes(16).toString('hex'),
    region,
    bucket,
    dataDir: options.s3DataDir ?? join(home, 's3'),
  };
  const s3 = add(
    s3Kind === 'minio' ? minioSpec(tools[s3Kind], access, nextPort()) : versitygwSpec(tools[s3Kind], access),
  );
  await mkdir(access.dataDir, { recursive: true });
  await Promise.all([postgres?.start(), redis.start(), s3.start()]);

  const token = `cluster-${randomBytes(20).toString('hex')}`;
  const bootstrap = join(home, 'bootstrap.json');
  const reviewerToken = `reviewer-${randomBytes(20).toString('hex')}`;
  const members = [
    { login: 'ada', role: 'admin', token, siteAdmin: true },
    { login: 'rita', role: 'admin', token: reviewerToken },
  ];
  await writeFile(bootstrap, JSON.stringify({ organizations: [{ name: organization, members }] }), { mode: 0o600 });
  const proxyPort = options.port ?? nextPort();
  const url = `http://127.0.0.1:${proxyPort}`;
  const settings: Settings = {
    ...chartServiceLinks,
    HOME: home,
    HOLDFAST_PUBLIC_URL: url,
    HOLDFAST_DATABASE_URL: (await options.databaseThrough?.(databaseUrl)) ?? databaseUrl,
    HOLDFAST_REDIS_URL: `redis://127.0.0.1:${redisPort}`,
    HOLDFAST_MASTER_KEYS: `cluster:${randomBytes(32).toString('base64')}`,
    HOLDFAST_BOOTSTRAP: bootstrap,
    HOLDFAST_TRUSTED_PROXIES: '127.0.0.1',
    HOLDFAST_S3_BUCKET: bucket,
    HOLDFAST_S3_ENDPOINT: access.endpoint,
    HOLDFAST_S3_REGION: region,
    AWS_ACCESS_KEY_ID: access.accessKeyId,
    AWS_SECRET_ACCESS_KEY: access.secretAccessKey,
    ...options.settings,
  };

  onProgress('bucket and migrations');
  for (const step of ['create-bucket', ...(isPrepared ? [] : ['migrate'])]) {
    await run(process.execPath, [entry, step], { env: { PATH: process.env['PATH'] ?? '', ...settings } });
  }

  onProgress('workers, API replicas and proxy');
  const program = options.program ?? (() => entry);
  const workerPorts = Array.from({ length: workerCount }, nextPort);
  const workers = workerPorts.map((port, index) =>
    add(workerSpec(program, index, port, { ...settings, ...options.workerSettings?.(index, access.endpoint) })),
  );
  const apiPorts = Array.from({ length: apiCount + spareCount }, nextPort);
  const apiManagementUrls = apiPorts.map(() => `http://127.0.0.1:${nextPort()}`);
  const allApis = apiPorts.map((port, index) =>
    add(
      apiSpec(program, index, port, {
        ...settings,
        HOLDFAST_MANAGEMENT_LISTEN: new URL(apiManagementUrls[index] as string).host,
        ...options.apiSettings?.(index, access.endpoint),
      }),
    ),
  );
  const apis = allApis.slice(0, apiCount);
  const spareApis = allApis.slice(apiCount).map((api, index) => ({
    api,
    managementUrl: apiManagementUrls[apiCount + index] as string,
  }));
  const webPort = nextPort();
  const web = add(webSpec(tools.caddy, home, webPort));
  const proxy = add(proxySpec(tools.caddy, home, proxyPort, apiPorts, webPort));
  await Promise.all([...workers, ...apis, web].map((part) => part.start()));
  await proxy.start();

  return {
    url,
    token,
    reviewerToken,
    organization,
    databaseUrl,
    redisUrl: settings['HOLDFAST_REDIS_URL'] as string,
    s3Access: access,
    postgres,
    redis,
    s3,
    proxy,
    web,
    apis,
    spareApis,
    workers,
    workerUrls: workerPorts.map((port) => `http://127.0.0.1:${port}`),
    apiUrls: apiPorts.slice(0, apiCount).map((port) => `http://127.0.0.1:${port}`),
    apiManagementUrls: apiManagementUrls.slice(0, apiCount),
  };
}

function redisSpec(file: string, home: string, port: number): ProcessSpec {
  const inMemory = ['--save', '', '--appendonly', 'no', '--maxmemory-policy', 'noeviction'];
  return {
    name: 'redis',
    file,
    args: ['--bind', '127.0.0.1', '--port', String(port), '--dir', home, ...inMemory],
    env: {},
    isReady: () => answersPing(port),
  };
}

function minioSpec(file: string, access: S3Access & { dataDir: string }, consolePort: number): ProcessSpec {
  const address = new URL(access.endpoint).host;
  return {
    name: 's3',
    file,
    args: [
      ...['server', '--quiet', '--address', address, '--console-address', `127.0.0.1:${consolePort}`],
      access.dataDir,
    ],
    env: {
      HOME: access.dataDir,
      MINIO_ROOT_USER: access.accessKeyId,
      MINIO_ROOT_PASSWORD: access.secretAccessKey,
      MINIO_BROWSER: 'off',
      MINIO_UPDATE: 'off',
    },
    isReady: async () => (await s3Request(access, 'GET', '/')).ok,
  };
}

function versitygwSpec(file: string, access: S3Access & { dataDir: string }): ProcessSpec {
  return {
    name: 's3',
    file,
    args: ['--listen', new URL(access.endpoint).host, '--region', access.region, '--quiet', access.dataDir],
    env: { HOME: access.dataDir, ROOT_ACCESS_KEY: access.accessKeyId, ROOT_SECRET_KEY: access.secretAccessKey },
    isReady: async () => (await s3Request(access, 'GET', '/')).ok,
  };
}

function workerSpec(program: (name: string) => string, index: number, port: number, settings: Settings): ProcessSpec {
  const name = `worker-${index + 1}`;
  const address = `127.0.0.1:${port}`;
  return {
    name,
    file: process.execPath,
    args: () => [...nodeFlags, program(name), 'worker'],
    env: { ...settings, HOLDFAST_MANAGEMENT_LISTEN: address },
    isReady: () => isOk(`http://${address}/readyz`),
    stopGraceMs: 90_000,
  };
}

function apiSpec(program: (name: string) => string, index: number, port: number, settings: Settings): ProcessSpec {
  const name = `api-${index + 1}`;
  const address = `127.0.0.1:${port}`;
  return {
    name,
    file: process.execPath,
    args: () => [...nodeFlags, program(name), 'api'],
    env: { HOLDFAST_DRAIN_SECONDS: drainSeconds, ...settings, HOLDFAST_LISTEN: address },
    isReady: () => isOk(`http://${address}/readyz`),
    stopGraceMs: 90_000,
  };
}

/** The build of the web UI, or a placeholder page. */
function webRoot(): string {
  const built = join(root, 'dist', 'web');
  return existsSync(join(built, 'index.html')) ? built : join(root, 'deploy', 'web');
}

function webSpec(file: string, home: string, port: number): ProcessSpec {
  return {
    name: 'web',
    file,
    args: ['run', '--adapter', 'caddyfile', '--config', join(root, 'deploy', 'web', 'Caddyfile')],
    env: {
      HOME: home,
      WEB_BIND: '127.0.0.1',
      WEB_PORT: String(port),
      WEB_ROOT: webRoot(),
    },
    isReady: () => isOk(`http://127.0.0.1:${port}/`),
  };
}
