import { totalmem } from 'node:os';
import type { Settings } from './settings.ts';

/**
 * Values that no operator sets: constants, and values derived from settings. Sizes are in bytes. Tests replace single values
 * (`parseConfig`).
 */
export type Tuning = ReturnType<typeof tuningOf>;

const mib = 1024 * 1024;
const gib = 1024 * mib;

/** Maximum default memory budget of a process, because V8 does not use much more by itself. */
const maxDefaultMemoryBytes = 2 * gib;

export function tuningOf(settings: Settings) {
  const memoryBytes = settings.HOLDFAST_MEMORY_BYTES ?? Math.min(availableMemory(), maxDefaultMemoryBytes);
  const storeTimeoutMs = settings.HOLDFAST_STORE_TIMEOUT_MS;
  const requestsPerMinute = settings.HOLDFAST_REQUESTS_PER_MINUTE;
  return {
    // ---- Memory of a process ----
    /** Of checkpoint, journal and event bodies that wait for workers. */
    inFlightBytes: Math.ceil(memoryBytes / 8),
    /** The same for imports, which are counted separately so that they never delay checkpoints. */
    importInFlightBytes: Math.ceil(memoryBytes / 16),
    /** Of bodies that are decompressed and parsed in memory. Bodies up to 64 KiB do not count; a single one may take more. */
    bufferedBodyBytes: Math.ceil(memoryBytes / 32),
    /** Of journals that are replayed while their update runs. */
    openReplayBytes: Math.ceil(memoryBytes / 64),
    redisImportInFlightBytes: Math.ceil(settings.HOLDFAST_REDIS_IN_FLIGHT_BYTES / 2),

    // ---- Sizes ----
    /** Of a decompressed batch of journal entries or events, and of a delta. A single entry becomes a string: at most 512 MiB in V8. */
    maxBatchBytes: 128 * mib,
    /** Of decompressed calls that encrypt, decrypt or create a stack. */
    maxControlBodyBytes: 64 * mib,
    /** Of the configuration, environment, message or program of an update, each in JSON. */
    maxFieldBytes: mib,
    /** Of a stored engine event. A larger one is replaced by a warning that names its size. */
    maxEventBytes: mib,
    /** Of a secret to encrypt. */
    maxSecretBytes: 16 * mib,
    /** Bodies from this size on, as sent, go to the large queue so that they do not delay the others. */
    largeBytes: 8 * mib,

    // ---- Clients ----
    maxConnectionsPerAddress: Math.ceil(settings.HOLDFAST_MAX_CONNECTIONS / 4),
    /** To receive the headers of a request. */
    headersTimeoutSeconds: Math.min(20, settings.HOLDFAST_KEEP_ALIVE_SECONDS),
    /** Averaged over about a minute. */
    minBodyBytesPerSecond: 16 * 1024,
    /** A user is signed out after this time without a request. */
    sessionIdleSeconds: Math.min(settings.HOLDFAST_SESSION_HOURS, 12) * 3600,
    /** Limits of invalid tokens and leases from one address. */
    invalidTokensPerMinute: 60,
    userRequestsPerMinute: 2 * requestsPerMinute,
    addressRequestsPerMinute: 4 * requestsPerMinute,
    /** How long tokens of an unreachable CI issuer are verified with the last known keys. */
    issuerOutageSeconds: 3600,

    // ---- Stores ----
    databaseConnectMs: Math.min(5_000, Math.max(1_000, Math.ceil(storeTimeoutMs / 3))),
    /** For a free connection of the pool. */
    databaseAcquireMs: 10_000,
    s3TimeoutMs: Math.min(30_000, storeTimeoutMs),

    // ---- Updates and the work in the background ----
    /** Webhooks are notified of a waiting update after this time, unless a rule says otherwise. */
    waitAlertSeconds: 600,
    largeJobConcurrency: Math.ceil(settings.HOLDFAST_JOB_CONCURRENCY / 2),
    /** How long a request waits for its job. */
    jobWaitSeconds: 120,
    /** A damaged state can be rebuilt from the journal of its update for this long. */
    journalGraceSeconds: 3600,
    /** How long after the end of an update its engine events are archived: the last of them may arrive late. */
    eventArchiveDelaySeconds: 2 * settings.HOLDFAST_SWEEP_SECONDS,
    /** How long an upload may take to arrive. No blob is deleted sooner, and a deleted one is deleted again after it. */
    blobGraceSeconds: Math.min(3600, settings.HOLDFAST_BLOB_RETENTION_SECONDS),
    /** Each stored checkpoint is read back within this time. */
    scrubDays: 30,
    /** Rate for the text of states, for one worker: about a quarter of a core with the default. */
    encodeBytesPerSecond: 4 * settings.HOLDFAST_BACKGROUND_BYTES_PER_SECOND,
    /** Objects and rows that a run which compares the blob store with the database checks. */
    reconcileObjectsPerSecond: 500,
  };
}

/** The limit of the container, or the memory of the machine. */
function availableMemory(): number {
  // 0 or huge if there is no limit.
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}
