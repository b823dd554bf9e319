import { totalmem } from 'node:os';
import { Type } from 'typebox';
import { Value } from 'typebox/value';
import type { Settings } from './settings.ts';

/**
 * Operators do not set these values: constants, and values derived from settings. Sizes are in bytes. Tests replace single values
 * (`parseConfig`, `tuningFrom`).
 */
export type Tuning = ReturnType<typeof tuningOf>;

const Numbers = Type.Record(Type.String(), Type.Number());

const mib = 1024 * 1024;
const gib = 1024 * mib;

/** V8 does not use much more on its own. */
const maxDefaultMemoryBytes = 2 * gib;

export function tuningOf(settings: Settings) {
  const memoryBytes = settings.HOLDFAST_MEMORY_BYTES ?? Math.min(availableMemory(), maxDefaultMemoryBytes);
  const requestsPerMinute = settings.HOLDFAST_REQUESTS_PER_MINUTE;
  return {
    /** Memory of bodies that wait for workers, except imports. */
    inFlightBytes: Math.ceil(memoryBytes / 8),
    /** Separate, so that imports never delay checkpoints. */
    importInFlightBytes: Math.ceil(memoryBytes / 16),
    /** Memory of decompressed and parsed bodies. Bodies up to 64 KiB do not count; a single body may take more. */
    bufferedBodyBytes: Math.ceil(memoryBytes / 32),
    /** Memory of journals that are replayed while their update is running. */
    openReplayBytes: Math.ceil(memoryBytes / 64),
    redisImportInFlightBytes: Math.ceil(settings.HOLDFAST_REDIS_IN_FLIGHT_BYTES / 2),

    /** The limit of decompressed batches of entries or events, and of a delta. An entry becomes a string: at most 512 MiB in V8. */
    maxBatchBytes: 128 * mib,
    /** The limit of decompressed calls that encrypt, decrypt or create a stack. */
    maxControlBodyBytes: 64 * mib,
    /** The limit of the configuration, environment, message or program of an update, each in JSON. */
    maxFieldBytes: mib,
    /** A larger engine event is replaced by a warning that names its size. */
    maxEventBytes: mib,
    maxSecretBytes: 16 * mib,
    /** Larger bodies, as sent, use the large queue so that they do not delay the others. */
    largeBytes: 8 * mib,

    maxConnectionsPerAddress: Math.ceil(settings.HOLDFAST_MAX_CONNECTIONS / 4),
    headersTimeoutSeconds: 20,
    keepAliveSeconds: 75,
    /** Averaged over about a minute. */
    minBodyBytesPerSecond: 16 * 1024,
    /** A user is signed out after this time without a request. */
    sessionIdleSeconds: Math.min(settings.HOLDFAST_SESSION_HOURS, 12) * 3600,
    /** Counted per address, including invalid leases. */
    invalidTokensPerMinute: 60,
    userRequestsPerMinute: 2 * requestsPerMinute,
    addressRequestsPerMinute: 4 * requestsPerMinute,
    /** The last known keys of an unreachable CI issuer are used this long. */
    issuerOutageSeconds: 3600,

    /** 0 for no wait. */
    startWaitSeconds: 60,
    statementTimeoutMs: 60_000,
    databaseConnectMs: 5_000,
    /** Maximum wait for a free connection of the pool. */
    databaseAcquireMs: 10_000,
    /** Maximum time without progress of a request. */
    s3TimeoutMs: 30_000,

    /** The life of a lease without a renewal. The CLI relies on it. */
    leaseSeconds: 300,
    /** The interval of checks for due background tasks. */
    sweepSeconds: 30,
    /** Webhooks are notified of a waiting update after this time, unless a rule sets another one. */
    waitAlertSeconds: 600,
    largeJobConcurrency: Math.ceil(settings.HOLDFAST_JOB_CONCURRENCY / 2),
    /** Maximum wait of a request for its job. */
    jobWaitSeconds: 120,
    /** Entries between snapshots of a journal; see JournalWriter. */
    journalSnapshotEntries: 5_000,
    /** A damaged state can be rebuilt from the journal of its update for this time. */
    journalGraceSeconds: 3600,
    /** The last engine events of an update may arrive after its end. */
    eventArchiveDelaySeconds: 60,
    /** How long a call waits for events of a running update, because the CLI repeats the call without a pause. */
    eventHoldMs: 2_000,
    /** Longer than any upload. Blobs are not deleted sooner, and are deleted again after this time. */
    blobGraceSeconds: Math.min(3600, settings.HOLDFAST_BLOB_RETENTION_SECONDS),
    /** Each stored checkpoint is read back within this time. */
    scrubDays: 30,
    /** The rate at which one worker encodes states: about a quarter of a core with the default. */
    encodeBytesPerSecond: 4 * settings.HOLDFAST_BACKGROUND_BYTES_PER_SECOND,
    /** The interval of comparisons of the blob store with the database; 0 for none. */
    reconcileSeconds: 24 * 3600,
    reconcileObjectsPerSecond: 500,
  };
}

/** Tests start a process with this JSON. Releases may rename the values, which are not settings. */
export function tuningFrom(json: string | undefined): Partial<Tuning> {
  if (json === undefined) return {};
  try {
    const given: unknown = JSON.parse(json);
    Value.Assert(Numbers, given);
    return given;
  } catch (cause) {
    throw new TypeError('HOLDFAST_TEST_TUNING is not a numeric object', { cause });
  }
}

function availableMemory(): number {
  // Without a limit, this is 0 or huge.
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}
