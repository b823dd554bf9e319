import path from 'node:path';
import { type AllowList, parseAllowList } from '../outgoing/address-rules.ts';
import { httpServerConfig, trustedProxiesOf } from './http-server-config.ts';
import { oidcConfig } from './oidc.ts';
import { addressingOf } from './s3-addressing.ts';
import type { Settings } from './settings.ts';
import type { Tuning } from './tuning.ts';

export function toConfig(settings: Settings, tuning: Tuning) {
  const dataDir = path.resolve(settings.HOLDFAST_DATA_DIR);
  const embedded = settings.HOLDFAST_DATABASE_URL === undefined;
  const listen = parseListen(settings.HOLDFAST_LISTEN);
  const management = settings.HOLDFAST_MANAGEMENT_LISTEN;
  const managementListen = parseListen(management);
  // Port 0 means any free port, so two of these addresses never coincide.
  const isSame =
    management === 'same' ||
    (listen.port !== 0 && managementListen.port === listen.port && managementListen.host === listen.host);
  const front = httpServerConfig(settings, tuning);
  const displayHost = ['0.0.0.0', '::', ''].includes(listen.host) ? 'localhost' : listen.host;
  return {
    listen,
    /** Null for the same address as the service. */
    managementListen: isSame ? null : managementListen,
    trustedProxies: trustedProxiesOf(settings),
    front,
    publicUrl:
      settings.HOLDFAST_PUBLIC_URL ??
      `${front.tls ? 'https' : 'http'}://${displayHost.includes(':') ? `[${displayHost}]` : displayHost}:${listen.port}`,
    /** How long a user stays signed in in a browser. */
    sessions: {
      idleSeconds: tuning.sessionIdleSeconds,
      maxSeconds: settings.HOLDFAST_SESSION_HOURS * 3600,
    },
    oidc: oidcConfig(settings),
    dataDir,
    database: {
      /** Null to run the embedded Postgres under `dataDir`. */
      url: settings.HOLDFAST_DATABASE_URL ?? null,
      poolSize: settings.HOLDFAST_DATABASE_POOL_SIZE,
      statementTimeoutMs: tuning.statementTimeoutMs,
      connectTimeoutMs: tuning.databaseConnectMs,
      acquireTimeoutMs: tuning.databaseAcquireMs,
      replicaUrl: settings.HOLDFAST_DATABASE_REPLICA_URL ?? null,
    },
    /** How long a starting process waits for unavailable dependencies. */
    startWaitMs: tuning.startWaitSeconds * 1000,
    blobs:
      settings.HOLDFAST_S3_BUCKET === undefined
        ? ({ kind: 'files', directory: path.join(dataDir, 'blobs') } as const)
        : ({
            kind: 's3',
            bucket: settings.HOLDFAST_S3_BUCKET,
            ...addressingOf(settings.HOLDFAST_S3_BUCKET, settings.HOLDFAST_S3_ENDPOINT ?? null),
            region: settings.HOLDFAST_S3_REGION,
            requestTimeoutMs: tuning.s3TimeoutMs,
          } as const),
    secondStore: settings.HOLDFAST_SECOND_STORE ?? null,
    /** A null `to` means no scheduled backups. `schedule` is in UTC. */
    backup: {
      to: settings.HOLDFAST_BACKUP_TO ?? null,
      schedule: settings.HOLDFAST_BACKUP_SCHEDULE,
      keep: settings.HOLDFAST_BACKUP_KEEP,
      recipients: settings.HOLDFAST_BACKUP_RECIPIENTS?.split(',') ?? [],
    },
    /** The break-glass bundle. */
    bundleUrl: settings.HOLDFAST_BUNDLE_URL ?? null,
    /** Null: a passphrase encrypts the bundle's secrets. */
    bundleKms: settings.HOLDFAST_BUNDLE_KMS ?? null,
    /** With `dataKeySeconds` 0, age is no reason to replace a data key. */
    encryption: {
      encryptsDocuments: settings.HOLDFAST_ENCRYPT_DOCUMENTS,
      dataKeySeconds: settings.HOLDFAST_DATA_KEY_DAYS * 86_400,
    },
    /** `vaultTokenFile` comes before `secrets.vaultToken`. */
    kms: { vaultTokenFile: settings.HOLDFAST_VAULT_TOKEN_FILE ?? null },
    bootstrapFile: settings.HOLDFAST_BOOTSTRAP ?? null,
    organizationCreation: settings.HOLDFAST_ORGANIZATION_CREATION ?? (embedded ? 'anyone' : 'site-admin'),
    /** Counted per address, including invalid leases. Beyond this number, unknown ones are looked up in batches. */
    invalidTokensPerMinute: tuning.invalidTokensPerMinute,
    /** Across all replicas; 0 for no limit. */
    requestsPerMinute: {
      token: settings.HOLDFAST_REQUESTS_PER_MINUTE,
      user: tuning.userRequestsPerMinute,
      address: tuning.addressRequestsPerMinute,
    },
    checkpointMode: settings.HOLDFAST_CHECKPOINT_MODE,
    /** The role of members from an identity provider. */
    scimDefaultRole: settings.HOLDFAST_SCIM_DEFAULT_ROLE,
    leaseSeconds: tuning.leaseSeconds,
    updateQueue: {
      waitSeconds: settings.HOLDFAST_LOCK_WAIT_SECONDS,
      longPollSeconds: settings.HOLDFAST_LONG_POLL_SECONDS,
      alertSeconds: tuning.waitAlertSeconds,
    },
    updateSeconds: settings.HOLDFAST_UPDATE_HOURS * 3600,
    sweepSeconds: tuning.sweepSeconds,
    blobGraceSeconds: tuning.blobGraceSeconds,
    /** With `bytesPerSecond` 0, stored checkpoints are not read back. */
    scrub: {
      bytesPerSecond: settings.HOLDFAST_BACKGROUND_BYTES_PER_SECOND,
      periodSeconds: tuning.scrubDays * 86_400,
    },
    eventHoldMs: tuning.eventHoldMs,
    eventArchiving: { delaySeconds: tuning.eventArchiveDelaySeconds },
    /** With `bytesPerSecond` 0, older versions are not stored as differences. */
    encoding: { bytesPerSecond: tuning.encodeBytesPerSecond },
    /** With 0, the data of deleted stacks is deleted at once. */
    deletedStackDays: settings.HOLDFAST_DELETED_STACK_DAYS,
    journalSnapshotEntries: tuning.journalSnapshotEntries,
    journalGraceSeconds: tuning.journalGraceSeconds,
    blobRetentionSeconds: settings.HOLDFAST_BLOB_RETENTION_SECONDS,
    reconcile: {
      everySeconds: tuning.reconcileSeconds,
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
      /** For bodies in flight to workers, in memory (`inFlight`) and in Redis. */
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
    /** The default for organizations; 0 for no limit. */
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
    /** With 0 days, events are kept forever. Without a `receiverUrl`, they are not sent. */
    audit: {
      format: settings.HOLDFAST_AUDIT_EXPORT_FORMAT,
      receiverUrl: settings.HOLDFAST_AUDIT_EXPORT_URL ?? null,
      retentionDays: settings.HOLDFAST_AUDIT_RETENTION_DAYS,
      isExported: settings.HOLDFAST_AUDIT_EXPORT,
    },
    /** The addresses that the server may call on behalf of users. */
    outgoingAllow: allowListOf(settings),
    /** How long an issuer's keys are used after the last successful fetch. */
    issuerOutageMs: tuning.issuerOutageSeconds * 1000,
    drainMs: settings.HOLDFAST_DRAIN_SECONDS * 1000,
    shutdownMs: settings.HOLDFAST_SHUTDOWN_SECONDS * 1000,
    logLevel: settings.HOLDFAST_LOG_LEVEL,
    /** If null, jobs run in the server process. */
    redisUrl: settings.HOLDFAST_REDIS_URL ?? null,
    /** These authorities are trusted in addition to Node's. */
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
  if ('wrong' in parsed) throw new Error('HOLDFAST_OUTGOING_ALLOW has not been checked');
  return parsed.list;
}

function parseListen(text: string): { readonly host: string; readonly port: number } {
  const at = text.lastIndexOf(':');
  const port = Number(text.slice(at + 1));
  return { host: text.slice(0, at).replace(/^\[|\]$/g, '') || '0.0.0.0', port };
}
