import { totalmem } from 'node:os';
import { Type } from 'typebox';
import { Value } from 'typebox/value';
import type { Settings } from './settings.ts';

/**
 * Values that no operator sets: constants, and values derived from settings. Sizes are in bytes. Tests replace single values
 * (`parseConfig`, `tuningFrom`).
 */
export type Tuning = ReturnType<typeof tuningOf>;

const Numbers = Type.Record(Type.String(), Type.Number());

const mib = 1024 * 1024;
const gib = 1024 * mib;

/** Maximum default memory budget of a process, because V8 does not use much more by itself. */
const maxDefaultMemoryBytes = 2 * gib;

export function tuningOf(settings: Settings) {
  const memoryBytes = settings.HOLDFAST_MEMORY_BYTES ?? Math.min(availableMemory(), maxDefaultMemoryBytes);
  const requestsPerMinute = settings.HOLDFAST_REQUESTS_PER_MINUTE;
  return {
    /** Memory of checkpoint, journal and event bodies that wait for workers. */
    inFlightBytes: Math.ceil(memoryBytes / 8),
    /** The same for imports, which are counted separately so that they never delay checkpoints. */
    importInFlightBytes: Math.ceil(memoryBytes / 16),
    /** Memory of bodies that are decompressed and parsed. Bodies up to 64 KiB do not count; a single one may take more. */
    bufferedBodyBytes: Math.ceil(memoryBytes / 32),
    /** Memory of journals that are replayed while their update runs. */
    openReplayBytes: Math.ceil(memoryBytes / 64),
    redisImportInFlightBytes: Math.ceil(settings.HOLDFAST_REDIS_IN_FLIGHT_BYTES / 2),

    /** Maximum size of a decompressed batch of journal entries or events, and of a delta. A single entry becomes a string: at most 512 MiB in V8. */
    maxBatchBytes: 128 * mib,
    /** Maximum size of decompressed calls that encrypt, decrypt or create a stack. */
    maxControlBodyBytes: 64 * mib,
    /** Maximum size of the configuration, environment, message or program of an update, each in JSON. */
    maxFieldBytes: mib,
    /** Maximum size of a stored engine event. A larger one is replaced by a warning that names its size. */
    maxEventBytes: mib,
    /** Maximum size of a secret to encrypt. */
    maxSecretBytes: 16 * mib,
    /** Bodies from this size on, as sent, go to the large queue so that they do not delay the others. */
    largeBytes: 8 * mib,

    maxConnectionsPerAddress: Math.ceil(settings.HOLDFAST_MAX_CONNECTIONS / 4),
    /** How long the headers of a request may take to arrive. */
    headersTimeoutSeconds: 20,
    /** How long an idle connection is kept open. */
    keepAliveSeconds: 75,
    /** Minimum rate of a body, averaged over about a minute. */
    minBodyBytesPerSecond: 16 * 1024,
    /** A user is signed out after this time without a request. */
    sessionIdleSeconds: Math.min(settings.HOLDFAST_SESSION_HOURS, 12) * 3600,
    /** Limits of invalid tokens and leases from one address. */
    invalidTokensPerMinute: 60,
    userRequestsPerMinute: 2 * requestsPerMinute,
    addressRequestsPerMinute: 4 * requestsPerMinute,
    /** How long tokens of an unreachable CI issuer are verified with the last known keys. */
    issuerOutageSeconds: 3600,

    /** How long a starting process waits for unavailable dependencies; 0: not at all. */
    startWaitSeconds: 60,
    /** Maximum time of one SQL statement. */
    statementTimeoutMs: 60_000,
    databaseConnectMs: 5_000,
    /** How long a call waits for a free connection of the pool. */
    databaseAcquireMs: 10_000,
    /** How long a request may make no progress. */
    s3TimeoutMs: 30_000,

    /** Life of a lease without a renewal. The CLI relies on it. */
    leaseSeconds: 300,
    /** Time between checks of which background tasks are due. */
    sweepSeconds: 30,
    /** Webhooks are notified of a waiting update after this time, unless a rule says otherwise. */
    waitAlertSeconds: 600,
    largeJobConcurrency: Math.ceil(settings.HOLDFAST_JOB_CONCURRENCY / 2),
    /** How long a request waits for its job. */
    jobWaitSeconds: 120,
    /** Entries between snapshots of a journal; see JournalWriter. */
    journalSnapshotEntries: 5_000,
    /** A damaged state can be rebuilt from the journal of its update for this long. */
    journalGraceSeconds: 3600,
    /** How long after the end of an update its engine events are archived: the last of them may arrive late. */
    eventArchiveDelaySeconds: 60,
    /** How long a call waits for events of a running update: the CLI repeats it without a pause. */
    eventHoldMs: 2_000,
    /** How long an upload may take to arrive. No blob is deleted sooner, and a deleted one is deleted again after it. */
    blobGraceSeconds: Math.min(3600, settings.HOLDFAST_BLOB_RETENTION_SECONDS),
    /** Each stored checkpoint is read back within this time. */
    scrubDays: 30,
    /** Rate at which one worker encodes the text of states: about a quarter of a core with the default. */
    encodeBytesPerSecond: 4 * settings.HOLDFAST_BACKGROUND_BYTES_PER_SECOND,
    /** Time between runs that compare the blob store with the database; 0: none. */
    reconcileSeconds: 24 * 3600,
    /** Rate at which such a run checks objects and rows. */
    reconcileObjectsPerSecond: 500,
  };
}

/**
 * Reads values with which a test starts a process, as JSON. They are no setting: releases may rename them. Throws TypeError.
 */
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

/** The limit of the container, or the memory of the machine. */
function availableMemory(): number {
  // 0 or huge if there is no limit.
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}
