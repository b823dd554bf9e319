import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { TSchema } from 'typebox';
import { Value } from 'typebox/value';
import { isPlaceholder, isWeakKey } from '../crypto/weak-secrets.ts';
import { OperatorError } from '../errors/errors.ts';
import { type AllowList, parseAllowList } from '../outgoing/address-rules.ts';
import { trustAuthorities } from '../tls/trust.ts';
import { expected } from './expected.ts';
import { frontConfig, frontProblems, trustedProxiesOf } from './front.ts';
import { installationRoot } from './installation.ts';
import { oidcConfig, oidcProblems } from './oidc.ts';
import { isSchedule } from './schedule.ts';
import { findServiceLinks } from './service-links.ts';
import { Settings } from './settings.ts';
import { type Tuning, tuningOf } from './tuning.ts';

/**
 * Configuration of the process: parsed once, frozen, passed explicitly. Sizes are in bytes; names give the unit of
 * times.
 */
export type Config = ReturnType<typeof toConfig> & {
  /** Variables with our prefix that are no settings: Kubernetes sets them to name services. */
  readonly ignoredVariables: readonly string[];
};

/** The settings are invalid. The message names every invalid variable. */
export class ConfigError extends OperatorError {
  override readonly name = 'ConfigError';
}

/**
 * Reads the process environment and makes the process trust the authorities that it names. Throws CertificateFileError,
 * and ConfigError naming all invalid variables at once.
 */
export function loadConfig(): Config {
  const config = parseConfig(process.env);
  if (config.caFile !== null) trustAuthorities(config.caFile, 'HOLDFAST_CA_FILE');
  return config;
}

/** Parses environment variables. Tests replace values without a setting by `tuning`. Throws ConfigError. */
export function parseConfig(
  environment: Readonly<Record<string, string | undefined>>,
  tuning: Partial<Tuning> = {},
): Config {
  const known = Object.keys(Settings.properties);
  const serviceLinks = findServiceLinks(environment).filter((name) => !known.includes(name));
  const given: Record<string, string> = {};
  const problems: string[] = [];
  for (const [name, value] of Object.entries(environment)) {
    if (!name.startsWith('HOLDFAST_') || name.startsWith('HOLDFAST_TEST_') || value === undefined || value === '')
      continue;
    if (serviceLinks.includes(name)) continue;
    if (!known.includes(name)) problems.push(`${name}: unknown setting`);
    else given[name] = value;
  }
  for (const name of ['HOLDFAST_LISTEN', 'HOLDFAST_MANAGEMENT_LISTEN'] as const) {
    const port = Number(/:(\d+)$/.exec(given[name] ?? '')?.[1]);
    if (port > 65_535) problems.push(`${name}: port ${port} is above 65535`);
  }
  const converted = Value.Convert(Settings, Value.Default(Settings, { ...given })) as Partial<Settings>;
  // One by one, because TypeBox stops after a few errors in the whole object.
  for (const [name, value] of Object.entries(converted) as [keyof Settings, unknown][]) {
    const schema: TSchema & { description?: string } = Settings.properties[name];
    // Convert truncates fractions silently.
    const isTruncated = typeof value === 'number' && given[name] !== undefined && Number(given[name]) !== value;
    if (isTruncated || !Value.Check(schema, value))
      problems.push(`${name}: must be ${expected(schema)}. ${schema.description ?? ''}`.trim());
  }
  problems.push(...frontProblems(converted));
  problems.push(...oidcProblems(converted));
  problems.push(...findWeakSecrets(given));
  const schedule = converted.HOLDFAST_BACKUP_SCHEDULE ?? '';
  if (!isSchedule(schedule))
    problems.push(`HOLDFAST_BACKUP_SCHEDULE: ${JSON.stringify(schedule)} is not five fields of cron (0 3 * * *)`);
  const allowed = parseAllowList(given['HOLDFAST_OUTGOING_ALLOW']);
  if ('wrong' in allowed)
    problems.push(
      `HOLDFAST_OUTGOING_ALLOW: ${JSON.stringify(allowed.wrong)} is neither a network, nor a host name, nor http://host:port`,
    );
  if (problems.length > 0) {
    throw new ConfigError(`Invalid settings:\n${problems.map((problem) => `  ${problem}`).join('\n')}`);
  }
  const settings = converted as Settings;
  const config = toConfig(settings, { ...tuningOf(settings), ...tuning });
  return Object.freeze({ ...config, ignoredVariables: serviceLinks });
}

function toConfig(settings: Settings, tuning: Tuning) {
  const dataDir = path.resolve(settings.HOLDFAST_DATA_DIR);
  const embedded = settings.HOLDFAST_DATABASE_URL === undefined;
  const listen = parseListen(settings.HOLDFAST_LISTEN);
  const management = settings.HOLDFAST_MANAGEMENT_LISTEN;
  const managementListen = parseListen(management);
  // Port 0 means any free port, so two of them are never the same.
  const isSame =
    management === 'same' ||
    (listen.port !== 0 && managementListen.port === listen.port && managementListen.host === listen.host);
  const front = frontConfig(settings, tuning);
  const displayHost = ['0.0.0.0', '::', ''].includes(listen.host) ? 'localhost' : listen.host;
  return {
    listen,
    /** null: same address as the service. */
    managementListen: isSame ? null : managementListen,
    trustedProxies: trustedProxiesOf(settings),
    front,
    publicUrl:
      settings.HOLDFAST_PUBLIC_URL ??
      `${front.tls ? 'https' : 'http'}://${displayHost.includes(':') ? `[${displayHost}]` : displayHost}:${listen.port}`,
    /** How long a user stays signed in by a browser. */
    sessions: {
      idleSeconds: tuning.sessionIdleSeconds,
      maxSeconds: settings.HOLDFAST_SESSION_HOURS * 3600,
    },
    oidc: oidcConfig(settings),
    dataDir,
    database: {
      /** null: run the embedded Postgres under `dataDir`. */
      url: settings.HOLDFAST_DATABASE_URL ?? null,
      poolSize: settings.HOLDFAST_DATABASE_POOL_SIZE,
      statementTimeoutMs: settings.HOLDFAST_STORE_TIMEOUT_MS,
      connectTimeoutMs: tuning.databaseConnectMs,
      acquireTimeoutMs: tuning.databaseAcquireMs,
      /** null: the primary serves all reads. */
      replicaUrl: settings.HOLDFAST_DATABASE_REPLICA_URL ?? null,
    },
    /** How long a starting process waits for unavailable dependencies. */
    startWaitMs: settings.HOLDFAST_START_WAIT_SECONDS * 1000,
    blobs:
      settings.HOLDFAST_S3_BUCKET === undefined
        ? ({ kind: 'files', directory: path.join(dataDir, 'blobs') } as const)
        : ({
            kind: 's3',
            bucket: settings.HOLDFAST_S3_BUCKET,
            endpoint: settings.HOLDFAST_S3_ENDPOINT ?? null,
            region: settings.HOLDFAST_S3_REGION,
            forcePathStyle: settings.HOLDFAST_S3_PATH_STYLE,
            requestTimeoutMs: tuning.s3TimeoutMs,
          } as const),
    /** null: there is no second store. */
    secondStore: settings.HOLDFAST_SECOND_STORE ?? null,
    /** `to` null: no scheduled backups. `schedule` is in UTC. */
    backup: {
      to: settings.HOLDFAST_BACKUP_TO ?? null,
      schedule: settings.HOLDFAST_BACKUP_SCHEDULE,
      keep: settings.HOLDFAST_BACKUP_KEEP,
      recipients: settings.HOLDFAST_BACKUP_RECIPIENTS?.split(',') ?? [],
    },
    /** null: there is no break-glass bundle. */
    bundleUrl: settings.HOLDFAST_BUNDLE_URL ?? null,
    /** `dataKeySeconds` 0: data keys are not replaced by age. */
    encryption: {
      encryptsDocuments: settings.HOLDFAST_ENCRYPT_DOCUMENTS,
      dataKeySeconds: settings.HOLDFAST_DATA_KEY_DAYS * 86_400,
    },
    /** `vaultTokenFile` wins over `secrets.vaultToken`. */
    kms: { vaultTokenFile: settings.HOLDFAST_VAULT_TOKEN_FILE ?? null },
    bootstrapFile: settings.HOLDFAST_BOOTSTRAP ?? null,
    organizationCreation: settings.HOLDFAST_ORGANIZATION_CREATION ?? (embedded ? 'anyone' : 'site-admin'),
    /** Invalid tokens and leases allowed per address before unknown ones are looked up in batches. */
    invalidTokensPerMinute: tuning.invalidTokensPerMinute,
    /** Per token, user and address, across all replicas; 0: no limit. */
    requestsPerMinute: {
      token: settings.HOLDFAST_REQUESTS_PER_MINUTE,
      user: tuning.userRequestsPerMinute,
      address: tuning.addressRequestsPerMinute,
    },
    checkpointMode: settings.HOLDFAST_CHECKPOINT_MODE,
    /** Role of members whom an identity provider adds. */
    scimDefaultRole: settings.HOLDFAST_SCIM_DEFAULT_ROLE,
    leaseSeconds: settings.HOLDFAST_LEASE_SECONDS,
    /** Limits of calls that create updates of locked stacks. */
    updateQueue: {
      waitSeconds: settings.HOLDFAST_LOCK_WAIT_SECONDS,
      holdSeconds: settings.HOLDFAST_HOLD_SECONDS,
      alertSeconds: tuning.waitAlertSeconds,
    },
    /** Maximum duration of an update. */
    updateSeconds: settings.HOLDFAST_UPDATE_HOURS * 3600,
    sweepSeconds: settings.HOLDFAST_SWEEP_SECONDS,
    blobGraceSeconds: tuning.blobGraceSeconds,
    /** `bytesPerSecond` 0: stored checkpoints are not read back. */
    scrub: {
      bytesPerSecond: settings.HOLDFAST_BACKGROUND_BYTES_PER_SECOND,
      periodSeconds: tuning.scrubDays * 86_400,
    },
    eventArchiving: { delaySeconds: tuning.eventArchiveDelaySeconds },
    /** Older versions are stored as differences from others. `bytesPerSecond` 0: they are not. */
    encoding: { bytesPerSecond: tuning.encodeBytesPerSecond },
    /** 0: the data of deleted stacks is deleted at once. */
    deletedStackDays: settings.HOLDFAST_DELETED_STACK_DAYS,
    journalGraceSeconds: tuning.journalGraceSeconds,
    blobRetentionSeconds: settings.HOLDFAST_BLOB_RETENTION_SECONDS,
    /** `everySeconds` 0: no automatic runs. */
    reconcile: {
      everySeconds: settings.HOLDFAST_RECONCILE_HOURS * 3600,
      objectsPerSecond: tuning.reconcileObjectsPerSecond,
    },
    limits: {
      maxBodyBytes: settings.HOLDFAST_MAX_BODY_BYTES,
      maxBatchBytes: tuning.maxBatchBytes,
      maxControlBodyBytes: tuning.maxControlBodyBytes,
      maxFieldBytes: tuning.maxFieldBytes,
      maxEventBytes: tuning.maxEventBytes,
      maxSecretBytes: tuning.maxSecretBytes,
      inlineBytes: settings.HOLDFAST_INLINE_BYTES,
      directBytes: settings.HOLDFAST_DIRECT_BYTES,
      /** For bodies in flight to workers: in memory (`inFlight`) and in Redis. */
      inFlight: { writes: tuning.inFlightBytes, imports: tuning.importInFlightBytes },
      redisInFlight: {
        writes: settings.HOLDFAST_REDIS_IN_FLIGHT_BYTES,
        imports: tuning.redisImportInFlightBytes,
      },
      minBodyBytesPerSecond: tuning.minBodyBytesPerSecond,
      bufferedBodyBytes: tuning.bufferedBodyBytes,
      largeBytes: tuning.largeBytes,
      openReplayBytes: tuning.openReplayBytes,
    },
    /** For each organization without its own limits; 0: no limit. */
    quotas: {
      stacks: settings.HOLDFAST_QUOTA_STACKS,
      keptBytes: settings.HOLDFAST_QUOTA_BYTES,
      inFlightBytes: 0,
      updates: settings.HOLDFAST_QUOTA_UPDATES,
      requestsPerSecond: settings.HOLDFAST_QUOTA_REQUESTS_PER_SECOND,
    },
    jobs: {
      concurrency: settings.HOLDFAST_JOB_CONCURRENCY,
      largeConcurrency: tuning.largeJobConcurrency,
      waitSeconds: tuning.jobWaitSeconds,
    },
    /** `retentionDays` 0: events are kept. `receiverUrl` null: events are not sent. */
    audit: {
      format: settings.HOLDFAST_AUDIT_EXPORT_FORMAT,
      receiverUrl: settings.HOLDFAST_AUDIT_EXPORT_URL ?? null,
      retentionDays: settings.HOLDFAST_AUDIT_RETENTION_DAYS,
      isExported: settings.HOLDFAST_AUDIT_EXPORT,
    },
    /** The addresses that the server may call on behalf of users. */
    outgoingAllow: allowListOf(settings),
    /** How long keys of an issuer are used after the last successful fetch. */
    issuerOutageMs: tuning.issuerOutageSeconds * 1000,
    drainMs: settings.HOLDFAST_DRAIN_SECONDS * 1000,
    shutdownMs: settings.HOLDFAST_SHUTDOWN_SECONDS * 1000,
    logLevel: settings.HOLDFAST_LOG_LEVEL,
    /** null: jobs run in the server process. */
    redisUrl: settings.HOLDFAST_REDIS_URL ?? null,
    /** PEM file of certificate authorities to trust in addition to those of Node. */
    caFile: settings.HOLDFAST_CA_FILE ?? null,
    /** Never logged. */
    secrets: {
      masterKeys: settings.HOLDFAST_MASTER_KEYS ?? null,
      vaultToken: settings.HOLDFAST_VAULT_TOKEN ?? null,
      auditToken: settings.HOLDFAST_AUDIT_EXPORT_TOKEN ?? null,
      bundlePassphrase: settings.HOLDFAST_BUNDLE_PASSPHRASE ?? null,
    },
  } as const;
}

function allowListOf(settings: Settings): AllowList {
  const parsed = parseAllowList(settings.HOLDFAST_OUTGOING_ALLOW);
  if ('wrong' in parsed) throw new ConfigError('HOLDFAST_OUTGOING_ALLOW is not valid');
  return parsed.list;
}

function parseListen(text: string): { readonly host: string; readonly port: number } {
  const at = text.lastIndexOf(':');
  const port = Number(text.slice(at + 1));
  return { host: text.slice(0, at).replace(/^\[|\]$/g, '') || '0.0.0.0', port };
}

/** Version of this build, from package.json. */
export const holdfastVersion: string = (
  JSON.parse(readFileSync(path.join(installationRoot, 'package.json'), 'utf8')) as { version: string }
).version;

/** The directory of the web UI build, which may not exist yet. */
export const webFolder = path.join(installationRoot, 'dist', 'web');

/**
 * Returns a problem for each secret in the settings that is a placeholder or obviously not random, without quoting it.
 */
function findWeakSecrets(settings: Readonly<Record<string, string>>): string[] {
  const problems: string[] = [];
  // Only the first key: the others only unwrap and must stay usable until `rewrap-keys` has run.
  const [, key] = (settings['HOLDFAST_MASTER_KEYS'] ?? '').split(',')[0]?.split(':') ?? [];
  const bytes = Buffer.from(key ?? '', 'base64');
  // Malformed keys are reported elsewhere.
  if (bytes.length === 32 && isWeakKey(bytes))
    problems.push('HOLDFAST_MASTER_KEYS: the first key is not random; make one with: openssl rand -base64 32');
  for (const name of ['HOLDFAST_DATABASE_URL', 'HOLDFAST_DATABASE_REPLICA_URL', 'HOLDFAST_REDIS_URL']) {
    const password = /^[a-z+]+:\/\/[^:@/]*:([^@]*)@/.exec(settings[name] ?? '')?.[1];
    if (password !== undefined && isPlaceholder(password))
      problems.push(`${name}: the password is a placeholder from an example; choose another`);
  }
  return problems;
}
