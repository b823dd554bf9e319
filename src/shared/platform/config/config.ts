import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { TSchema } from 'typebox';
import { Value } from 'typebox/value';
import { Settings } from './settings.ts';

/** The process's configuration: parsed once, frozen, passed by hand. Sizes in bytes, times as their names say. */
export interface Config {
  readonly listen: { readonly host: string; readonly port: number };
  readonly workerListen: { readonly host: string; readonly port: number };
  readonly publicUrl: string;
  readonly dataDir: string;
  readonly database: {
    /** null: run the embedded Postgres under `dataDir`. */
    readonly url: string | null;
    readonly poolSize: number;
    readonly statementTimeoutMs: number;
  };
  readonly blobs:
    | { readonly kind: 'files'; readonly directory: string }
    | {
        readonly kind: 's3';
        readonly bucket: string;
        readonly endpoint: string | null;
        readonly region: string;
        readonly forcePathStyle: boolean;
        readonly requestTimeoutMs: number;
      };
  readonly bootstrapFile: string | null;
  readonly organizationCreation: 'anyone' | 'site-admin';
  readonly checkpointMode: 'auto' | 'journal' | 'delta' | 'full';
  readonly leaseSeconds: number;
  readonly sweepSeconds: number;
  readonly blobGraceSeconds: number;
  readonly limits: {
    readonly maxBodyBytes: number;
    readonly maxBatchBytes: number;
    readonly maxControlBodyBytes: number;
    readonly inlineBytes: number;
    readonly directBytes: number;
    readonly inFlightBytes: number;
    readonly redisInFlightBytes: number;
    readonly largeBytes: number;
  };
  readonly jobs: { readonly concurrency: number; readonly largeConcurrency: number; readonly waitSeconds: number };
  readonly drainMs: number;
  readonly shutdownMs: number;
  readonly logLevel: string;
  /** null: jobs run in the server process. */
  readonly redisUrl: string | null;
  /** Never logged. */
  readonly secrets: { readonly masterKeys: string | null };
}

/** The environment does not make a configuration; the message names every faulty variable. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** Reads the process environment. Throws ConfigError naming all faulty variables at once. */
export function loadConfig(): Config {
  return parseConfig(process.env);
}

/** Makes the configuration of environment variables. Throws ConfigError. */
export function parseConfig(environment: Readonly<Record<string, string | undefined>>): Config {
  const known = Object.keys(Settings.properties);
  const given: Record<string, string> = {};
  const problems: string[] = [];
  for (const [name, value] of Object.entries(environment)) {
    if (!name.startsWith('HOLDFAST_') || name.startsWith('HOLDFAST_TEST_') || value === undefined || value === '')
      continue;
    if (!known.includes(name)) problems.push(`${name}: there is no such setting`);
    else given[name] = value;
  }
  for (const name of ['HOLDFAST_LISTEN', 'HOLDFAST_WORKER_LISTEN'] as const) {
    const port = Number(/:(\d+)$/.exec(given[name] ?? '')?.[1]);
    if (port > 65_535) problems.push(`${name}: port ${port} is above 65535`);
  }
  const converted = Value.Convert(Settings, Value.Default(Settings, { ...given })) as Partial<Settings>;
  // One by one: asked for the whole object, TypeBox stops after a few errors.
  for (const [name, value] of Object.entries(converted) as [keyof Settings, unknown][]) {
    const schema: TSchema & { description?: string } = Settings.properties[name];
    // Convert cuts fractions off without a word.
    const isCut = typeof value === 'number' && given[name] !== undefined && Number(given[name]) !== value;
    const [issue] = isCut ? [{ message: 'must be a whole number' }] : Value.Errors(schema, value);
    if (issue) problems.push(`${name}: ${issue.message}. ${schema.description ?? ''}`.trim());
  }
  if (problems.length > 0) {
    throw new ConfigError(`These settings are wrong:\n${problems.map((problem) => `  ${problem}`).join('\n')}`);
  }
  const config = toConfig(converted as Settings);
  return Object.freeze(config);
}

function toConfig(settings: Settings): Config {
  const dataDir = path.resolve(settings.HOLDFAST_DATA_DIR);
  const embedded = settings.HOLDFAST_DATABASE_URL === undefined;
  const listen = parseListen(settings.HOLDFAST_LISTEN ?? (embedded ? '127.0.0.1:9090' : '0.0.0.0:9090'));
  const shownHost = ['0.0.0.0', '::', ''].includes(listen.host) ? 'localhost' : listen.host;
  return {
    listen,
    workerListen: parseListen(settings.HOLDFAST_WORKER_LISTEN),
    publicUrl:
      settings.HOLDFAST_PUBLIC_URL ?? `http://${shownHost.includes(':') ? `[${shownHost}]` : shownHost}:${listen.port}`,
    dataDir,
    database: {
      url: settings.HOLDFAST_DATABASE_URL ?? null,
      poolSize: settings.HOLDFAST_DATABASE_POOL_SIZE,
      statementTimeoutMs: settings.HOLDFAST_DATABASE_TIMEOUT_MS,
    },
    blobs:
      settings.HOLDFAST_S3_BUCKET === undefined
        ? { kind: 'files', directory: path.join(dataDir, 'blobs') }
        : {
            kind: 's3',
            bucket: settings.HOLDFAST_S3_BUCKET,
            endpoint: settings.HOLDFAST_S3_ENDPOINT ?? null,
            region: settings.HOLDFAST_S3_REGION,
            forcePathStyle: settings.HOLDFAST_S3_PATH_STYLE,
            requestTimeoutMs: settings.HOLDFAST_S3_TIMEOUT_MS,
          },
    bootstrapFile: settings.HOLDFAST_BOOTSTRAP ?? null,
    organizationCreation: settings.HOLDFAST_ORGANIZATION_CREATION,
    checkpointMode: settings.HOLDFAST_CHECKPOINT_MODE,
    leaseSeconds: settings.HOLDFAST_LEASE_SECONDS,
    sweepSeconds: settings.HOLDFAST_SWEEP_SECONDS,
    blobGraceSeconds: settings.HOLDFAST_BLOB_GRACE_SECONDS,
    limits: {
      maxBodyBytes: settings.HOLDFAST_MAX_BODY_BYTES,
      maxBatchBytes: settings.HOLDFAST_MAX_BATCH_BYTES,
      maxControlBodyBytes: settings.HOLDFAST_MAX_CONTROL_BODY_BYTES,
      inlineBytes: settings.HOLDFAST_INLINE_BYTES,
      directBytes: settings.HOLDFAST_DIRECT_BYTES,
      inFlightBytes: settings.HOLDFAST_IN_FLIGHT_BYTES,
      redisInFlightBytes: settings.HOLDFAST_REDIS_IN_FLIGHT_BYTES,
      largeBytes: settings.HOLDFAST_LARGE_BYTES,
    },
    jobs: {
      concurrency: settings.HOLDFAST_JOB_CONCURRENCY,
      largeConcurrency: settings.HOLDFAST_LARGE_JOB_CONCURRENCY,
      waitSeconds: settings.HOLDFAST_JOB_WAIT_SECONDS,
    },
    drainMs: settings.HOLDFAST_DRAIN_SECONDS * 1000,
    shutdownMs: settings.HOLDFAST_SHUTDOWN_SECONDS * 1000,
    logLevel: settings.HOLDFAST_LOG_LEVEL,
    redisUrl: settings.HOLDFAST_REDIS_URL ?? null,
    secrets: { masterKeys: settings.HOLDFAST_MASTER_KEYS ?? null },
  };
}

function parseListen(text: string): { host: string; port: number } {
  const at = text.lastIndexOf(':');
  const port = Number(text.slice(at + 1));
  return { host: text.slice(0, at).replace(/^\[|\]$/g, '') || '0.0.0.0', port };
}

/** Version of this build, from package.json. */
export const holdfastVersion: string = (
  JSON.parse(readFileSync(path.join(import.meta.dirname, '../../../../package.json'), 'utf8')) as { version: string }
).version;
