import { registerQuotaGauges, registerStorageGauge } from './access/quotas/quota-metrics.ts';
import { Quotas } from './access/quotas/quota-service.ts';
import { type QuotaName, quotaOptions } from './access/quotas/quotas.ts';
import { serverSource } from './audit/audit-event.ts';
import { createAuditRepository } from './audit/audit-repository.ts';
import { registerContextGauges } from './context-metrics.ts';
import { EventReader } from './events/event-reader.ts';
import { createEventRepository, type EventRepository } from './events/event-repository.ts';
import { createEventSegmentRepository } from './events/event-segment-repository.ts';
import { EventSegments } from './events/event-segments.ts';
import { EventWriter } from './events/event-writer.ts';
import { NotificationSender } from './events/live/notification-sender.ts';
import { EventsOfPreviews } from './events/previewed-changes.ts';
import { createIdentityRepository, type IdentityRepository } from './identity/identity-repository.ts';
import { holdRights } from './identity/locked-rights.ts';
import { untilBlobStore } from './platform/blobs/blob-start.ts';
import { type BlobStore, BlobStoreUnavailableError } from './platform/blobs/blob-store.ts';
import { type BlobStoreConfig, openBlobStore } from './platform/blobs/blob-stores.ts';
import { MeteredBlobStore } from './platform/blobs/metered-blob-store.ts';
import { createBlobPlaceRepository } from './platform/blobs/places/blob-place-repository.ts';
import { parsePlace } from './platform/blobs/places/place-url.ts';
import { PlacedBlobStore } from './platform/blobs/places/placed-blob-store.ts';
import { createCopyQueueRepository } from './platform/blobs/second/copy-queue-repository.ts';
import { MirroredBlobStore } from './platform/blobs/second/mirrored-blob-store.ts';
import { openSecondStore, type SecondStore } from './platform/blobs/second/second-store.ts';
import type { WriteFence } from './platform/claim/data-dir-claim.ts';
import type { Config } from './platform/config/config.ts';
import { type Database, openDatabase } from './platform/db/database.ts';
import type { Queryable } from './platform/db/sql.ts';
import { Lifecycle } from './platform/lifecycle/lifecycle.ts';
import { createLogger, type Logger } from './platform/logger/logger.ts';
import { Outgoing } from './platform/outgoing/outgoing.ts';
import { ByteBudget } from './platform/payloads/byte-budget.ts';
import { MemoryPayloadStore } from './platform/payloads/memory-payload-store.ts';
import type { PayloadStore } from './platform/payloads/payload-store.ts';
import { ReadOnlyMode } from './platform/read-only/read-only-mode.ts';
import type { SiteStore } from './platform/site/site-mark.ts';
import { createMetrics, type Metrics } from './platform/telemetry/metrics.ts';
import { createPolicyArchiveRepository } from './policies/policy-archive-repository.ts';
import { PolicyArchives } from './policies/policy-archives.ts';
import { StateIndexer } from './search/state-indexer.ts';
import { DataKeys } from './secrets/data-keys.ts';
import { EncryptedSecrets } from './secrets/encrypted-secrets.ts';
import { createEncryptionKeyRepository, type EncryptionKeyRepository } from './secrets/encryption-key-repository.ts';
import type { KeyRing } from './secrets/key-ring.ts';
import { createMasterKeyRepository } from './secrets/master-key-repository.ts';
import { openKeyRing } from './secrets/open-key-ring.ts';
import { StackCipher } from './secrets/stack-cipher.ts';
import { createStackRepository, type StackRepository } from './stacks/stack-repository.ts';
import { type BlobRepository, createBlobRepository } from './state/checkpoints/blob-repository.ts';
import { BodyBuffer } from './state/checkpoints/body-buffer.ts';
import { type CheckpointRepository, createCheckpointRepository } from './state/checkpoints/checkpoint-repository.ts';
import { CheckpointWriter } from './state/checkpoints/checkpoint-writer.ts';
import { type ChunkRepository, createChunkRepository } from './state/checkpoints/chunks/chunk-repository.ts';
import {
  createDocumentCheckRepository,
  type DocumentCheckRepository,
} from './state/checkpoints/document-check-repository.ts';
import { DocumentRepair } from './state/checkpoints/document-repair.ts';
import { DocumentStore } from './state/checkpoints/document-store.ts';
import { DocumentVerifier } from './state/checkpoints/document-verifier.ts';
import { SecondCopies } from './state/checkpoints/second-copies.ts';
import { DeploymentImporter } from './state/deployment-importer.ts';
import { BaseUrns } from './state/journal/change-limits/base-urns.ts';
import { type CompactionRepository, createCompactionRepository } from './state/journal/compaction-repository.ts';
import { IncrementalCompaction } from './state/journal/incremental/incremental-compaction.ts';
import { backlogSteps, JournalBacklog } from './state/journal/incremental/journal-backlog.ts';
import { OpenReplays } from './state/journal/incremental/open-replays.ts';
import { JournalCompactor } from './state/journal/journal-compactor.ts';
import { createJournalRepository, type JournalRepository } from './state/journal/journal-repository.ts';
import { createJournalSnapshotRepository } from './state/journal/journal-snapshot-repository.ts';
import { JournalSnapshots } from './state/journal/journal-snapshots.ts';
import { JournalWriter } from './state/journal/journal-writer.ts';
import type { ReplayRunner } from './state/journal/replay/runner/replay-runner.ts';
import { ThreadedReplayRunner } from './state/journal/replay/runner/threaded-replay-runner.ts';
import { StackRenamer } from './state/stack-renamer.ts';
import { StateReader } from './state/state-reader.ts';
import { StatisticsRecorder } from './statistics/statistics-recorder.ts';
import { AdmittedChanges } from './updates/admitted-changes.ts';
import { DatabaseMemory } from './updates/database/database-memory.ts';
import { createHistoryRepository, type HistoryRepository } from './updates/history-repository.ts';
import { createUpdateRepository, type UpdateRepository } from './updates/update-repository.ts';
import { WebhookSender } from './webhooks/webhook-sender.ts';

const blobCheckMs = 5_000;

/** Everything that both roles share, created once per process and passed explicitly. */
export interface AppContext extends AsyncDisposable {
  readonly config: Config;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly lifecycle: Lifecycle;
  readonly db: Database;
  readonly databaseMemory: DatabaseMemory;
  readonly readOnly: ReadOnlyMode;
  readonly blobs: BlobStore;
  /** Both stores, each by itself; null: blobs are written to one store. */
  readonly mirror: { readonly main: BlobStore; readonly second: BlobStore } | null;
  /** Mends one store from the other; null without a mirror. */
  readonly copies: SecondCopies | null;
  /** Adds to the audit log that another site has taken over. */
  readonly recordReplaced: (tx: Queryable, details: Readonly<Record<string, unknown>>) => Promise<unknown>;
  /** The stores with the mark of the site. */
  readonly siteStores: readonly SiteStore[];
  readonly payloads: PayloadStore;
  readonly identity: IdentityRepository;
  readonly stacks: StackRepository;
  readonly updates: UpdateRepository;
  readonly history: HistoryRepository;
  readonly checkpoints: CheckpointRepository;
  readonly blobRows: BlobRepository;
  readonly chunks: ChunkRepository;
  readonly journal: JournalRepository;
  readonly compactions: CompactionRepository;
  readonly events: EventRepository;
  readonly eventSegments: EventSegments;
  readonly eventReader: EventReader;
  readonly statistics: StatisticsRecorder;
  readonly policyArchives: PolicyArchives;
  readonly encryptionKeys: EncryptionKeyRepository;
  readonly cipher: StackCipher;
  readonly documents: DocumentStore;
  readonly documentChecks: DocumentCheckRepository;
  readonly journalSnapshots: JournalSnapshots;
  readonly verifier: DocumentVerifier;
  readonly states: StateReader;
  readonly indexer: StateIndexer;
  readonly compactor: JournalCompactor;
  readonly incrementalCompaction: IncrementalCompaction;
  readonly writer: CheckpointWriter;
  readonly bodyBuffer: BodyBuffer;
  readonly changes: AdmittedChanges;
  /** Memory that decompressed bodies take in this process. */
  readonly bufferedBodyBytes: ByteBudget;
  readonly importer: DeploymentImporter;
  readonly renamer: StackRenamer;
  readonly journalWriter: JournalWriter;
  readonly eventWriter: EventWriter;
  /** Notifies all replicas, and so the open pages of users, of commits. */
  readonly notifications: NotificationSender;
  readonly quotas: Quotas;
  /** Calls to servers whose URLs users provide. */
  readonly outgoing: Outgoing;
  readonly secrets: EncryptedSecrets;
  readonly webhookSender: WebhookSender;
  /** Checked before a write is acknowledged; null: no other server can take over the data. */
  readonly fence: WriteFence | null;
}

/** Parts that a caller such as a test provides itself. */
export interface ContextOverrides {
  readonly logger?: Logger;
  readonly blobs?: BlobStore;
  readonly payloads?: PayloadStore;
  readonly largeReplays?: ReplayRunner;
  readonly openReplays?: OpenReplays;
  readonly outgoing?: Outgoing;
  readonly fence?: WriteFence | undefined;
  /** Instead of the one of the master keys. Null, also where keys are needed: what is encrypted cannot be read. */
  readonly ring?: KeyRing | null;
}

/**
 * Opens the database and the stores and wires the shared services. `databaseUrl` and `masterKeys` are separate from the
 * configuration because embedded mode generates them. A process that decrypts no secrets and no encrypted documents needs
 * no master keys. Throws ConfigError if they are needed and missing. Disposing closes everything in phases.
 */
export async function createContext(
  config: Config,
  secrets: { databaseUrl: string; masterKeys: string | null },
  overrides: ContextOverrides = {},
): Promise<AppContext> {
  const logger = overrides.logger ?? createLogger({ level: config.logLevel });
  const metrics = createMetrics();
  const lifecycle = new Lifecycle(logger, config);
  const db = await openDatabase({ ...config.database, url: secrets.databaseUrl });
  lifecycle.onClose('stores', 'database', () => db.close());
  const notifications = new NotificationSender({ db, logger });
  lifecycle.onClose('stores', 'live notices', () => notifications.close());
  const encryptionKeys = createEncryptionKeyRepository(db);
  const ringParts = { encryptionKeys, logger, masterKeyRows: createMasterKeyRepository(db) };
  const opening = overrides.ring === undefined ? openKeyRing(config, secrets.masterKeys, ringParts) : overrides.ring;
  const ring = await Promise.resolve(opening).catch(async (error: unknown) => {
    await db.close();
    throw error;
  });
  const dataKeys = new DataKeys(encryptionKeys, ring, config.encryption.dataKeySeconds);
  const places = createBlobPlaceRepository(db);
  const second = await openSecondStore(config);
  const placed = overrides.blobs
    ? new PlacedBlobStore({ places, own: overrides.blobs, config: config.blobs })
    : await openBlobs({ config, db, logger, second });
  const mirror = second && !second.isReplicated ? { main: placed, second: second.store } : null;
  const queue = createCopyQueueRepository(db);
  const blobs = new MeteredBlobStore(
    mirror ? new MirroredBlobStore({ ...mirror, queue, isStrict: second?.isStrict === true }) : placed,
    metrics,
  );
  if (second && !mirror) lifecycle.onClose('stores', 'second store', () => second.store.close());
  const siteStores: SiteStore[] = [{ name: 'main', store: placed }];
  if (second) siteStores.push({ name: 'second', store: second.store });
  lifecycle.onClose('stores', 'blobs', () => blobs.close());

  const outgoing = overrides.outgoing ?? new Outgoing({ allow: config.outgoingAllow });
  const encryptedSecrets = new EncryptedSecrets(ring);
  const stacks = createStackRepository(db);
  const updates = createUpdateRepository(db);
  const checkpoints = createCheckpointRepository(db);
  const blobRows = createBlobRepository(db);
  const journal = createJournalRepository(db);
  const compactions = createCompactionRepository(db);
  const encryption = { isOn: config.encryption.encryptsDocuments, keys: dataKeys };
  const chunks = createChunkRepository(db);
  const documentsOver = (store: BlobStore): DocumentStore =>
    new DocumentStore(store, { blobs: blobRows, chunks }, config.limits.inlineBytes, encryption);
  const documents = documentsOver(blobs);
  const copies = mirror && new SecondCopies({ ...mirror, documentsOver, logger });
  const documentChecks = createDocumentCheckRepository(db);
  const journalSnapshots = new JournalSnapshots({ rows: createJournalSnapshotRepository(db), documents, logger });
  // The compactor needs the verifier; the verifier calls the compactor only once a document is damaged.
  const rebuild = (updateId: string): Promise<boolean> => compactor.rebuild(updateId);
  const repair = new DocumentRepair({ documentChecks, checkpoints, documents, chunks, rebuild, logger });
  const verifier = new DocumentVerifier({ documentChecks, checkpoints, documents, copies, repair, logger });
  const replayThread = new ThreadedReplayRunner();
  lifecycle.onClose('stores', 'replay thread', () => replayThread.close());
  const openReplays = overrides.openReplays ?? new OpenReplays({ maxBytes: config.limits.openReplayBytes });
  lifecycle.onClose('queues', 'open replays', async () => openReplays.close());
  const compactor: JournalCompactor = new JournalCompactor({
    updates,
    checkpoints,
    documents,
    verifier,
    journal,
    journalSnapshots,
    compactions,
    largeReplays: overrides.largeReplays ?? replayThread,
    openReplays,
    graceSeconds: config.journalGraceSeconds,
    logger,
  });
  const incrementalCompaction = new IncrementalCompaction((updateId) => compactor.advance(updateId), logger);
  lifecycle.onClose('work', 'incremental compaction', () => incrementalCompaction.close());
  const events = createEventRepository(db);
  const eventSegments = new EventSegments({ rows: createEventSegmentRepository(db), documents, copies, logger });
  const policyArchives = new PolicyArchives({ rows: createPolicyArchiveRepository(db), documents, copies, logger });
  const { maxBatchBytes, maxBodyBytes } = config.limits;
  const changes = new AdmittedChanges(db, config.jobs.waitSeconds, holdRights);
  const bufferedBodyBytes = new ByteBudget(config.limits.bufferedBodyBytes);
  const bodyBuffer = new BodyBuffer(
    Math.min(maxBatchBytes, maxBodyBytes),
    bufferedBodyBytes,
    // Bodies are smaller as received than when decompressed.
    Math.ceil(config.limits.bufferedBodyBytes / 2),
  );

  const payloads = overrides.payloads ?? new MemoryPayloadStore(config.limits.inFlight);
  lifecycle.onClose('queues', 'payload store', () => payloads.close());
  const readOnly = new ReadOnlyMode();
  const databaseMemory = new DatabaseMemory();
  registerContextGauges(metrics, {
    config,
    db,
    databaseMemory,
    readOnly,
    hasSecondStore: mirror !== null,
    payloads,
    bufferedBodyBytes,
    bodyBuffer,
    compactions,
    incrementalCompaction,
    openReplays,
  });

  const onRefused = (quota: QuotaName): void => metrics.quotaRejections.labels(quotaOptions[quota]).inc();
  const quotas = new Quotas({ db, defaults: config.quotas, logger, onRefused });
  registerStorageGauge(metrics, db);
  registerQuotaGauges(metrics, { db, payloads, quotas, defaults: config.quotas });
  const eventReader = new EventReader({ rows: events, segments: eventSegments });

  return {
    config,
    logger,
    metrics,
    lifecycle,
    db,
    databaseMemory,
    readOnly,
    blobs,
    mirror,
    copies,
    siteStores,
    recordReplaced,
    payloads,
    identity: createIdentityRepository(db),
    stacks,
    updates,
    history: createHistoryRepository(db),
    checkpoints,
    blobRows,
    chunks,
    journal,
    compactions,
    events,
    eventSegments,
    eventReader,
    statistics: new StatisticsRecorder({ db, eventReader, checkpoints, verifier }),
    policyArchives,
    encryptionKeys,
    cipher: new StackCipher(dataKeys),
    documents,
    documentChecks,
    journalSnapshots,
    verifier,
    compactor,
    incrementalCompaction,
    indexer: new StateIndexer({ db, checkpoints, verifier }),
    states: new StateReader({
      stacks,
      updates,
      checkpoints,
      verifier,
      compactor,
      compactions,
      compactLarge: (updateId) => compactor.compact(updateId),
    }),
    writer: new CheckpointWriter({
      updates,
      checkpoints,
      databaseMemory,
      documents,
      verifier,
      bodyBuffer,
      maxBodyBytes,
    }),
    bodyBuffer,
    bufferedBodyBytes,
    changes,
    importer: new DeploymentImporter({ changes, documents, maxBodyBytes }),
    renamer: new StackRenamer({ changes, checkpoints, documents, verifier }),
    journalWriter: new JournalWriter({
      changeLimits: {
        db,
        baseUrns: new BaseUrns({ checkpoints, verifier }),
        previewed: new EventsOfPreviews({ events: eventReader }),
      },
      databaseMemory,
      journal,
      backlog: new JournalBacklog(...backlogSteps(config.redisUrl !== null)),
      metrics,
    }),
    eventWriter: new EventWriter(events, config.limits.maxEventBytes, ({ stackId, updateId }) =>
      notifications.notify({ kind: 'events.appended', organizationId: null, stackId, updateId }),
    ),
    notifications,
    quotas,
    outgoing,
    secrets: encryptedSecrets,
    webhookSender: new WebhookSender({ db, outgoing, secrets: encryptedSecrets, logger }),
    fence: overrides.fence ?? null,
    [Symbol.asyncDispose]: () => lifecycle.close(),
  };
}

const recordReplaced: AppContext['recordReplaced'] = (tx, details) =>
  createAuditRepository(tx).insert(serverSource, {
    ...{ action: 'site.replace', outcome: 'refused', organization: null, object: 'installation', details },
  });

/**
 * Opens the blob store, that of the settings or the one to which it was moved, and waits until it is available. A running process survives
 * an S3 outage, but one that cannot reach S3 at startup may be misconfigured, unless it reaches the `second` store.
 */
export async function openBlobs({
  config,
  db,
  logger,
  second = null,
}: {
  readonly config: Config;
  readonly db: Database;
  readonly logger: Logger;
  readonly second?: SecondStore | null;
}): Promise<PlacedBlobStore> {
  const own = await openBlobStore(config.blobs);
  const placed = new PlacedBlobStore({ places: createBlobPlaceRepository(db), own, config: config.blobs });
  try {
    const row = await placed.read();
    const open = () => placed.storeOf(row && { id: row.mainId, url: row.mainUrl });
    const parts = { config, logger, second: second?.store ?? null };
    await untilAvailable(row ? parsePlace(row.mainUrl, config.blobs) : config.blobs, open, parts);
    if (row && (await open()) !== own)
      logger.warn({ place: row.mainUrl }, 'the blobs were moved, and the settings name another place: change them');
  } catch (error) {
    await placed.close();
    throw error;
  }
  return placed;
}

/** Opens the blob store with the second one, if there is one: reads come from there while the main one is away. */
export async function openBothBlobs(parts: {
  readonly config: Config;
  readonly db: Database;
  readonly logger: Logger;
}): Promise<BlobStore> {
  const second = await openSecondStore(parts.config);
  try {
    const main = await openBlobs({ ...parts, second });
    if (second === null) return main;
    return new MirroredBlobStore({ main, second: second.store, queue: createCopyQueueRepository(parts.db) });
  } catch (error) {
    await second?.store.close();
    throw error;
  }
}

/** Opens the blob store of the settings and waits until it is available, without a database that may say otherwise. */
export async function openOwnBlobs(config: Config, logger: Logger): Promise<BlobStore> {
  const store = await openBlobStore(config.blobs);
  try {
    await untilAvailable(config.blobs, async () => store, { config, logger, second: null });
  } catch (error) {
    await store.close();
    throw error;
  }
  return store;
}

async function untilAvailable(
  place: BlobStoreConfig,
  open: () => Promise<BlobStore>,
  { config, logger, second }: { readonly config: Config; readonly logger: Logger; readonly second: BlobStore | null },
): Promise<void> {
  if (place.kind === 'files') {
    await open();
    return;
  }
  const attempt = async (): Promise<void> => {
    try {
      await (await open()).check(blobCheckMs);
    } catch (error) {
      if (second === null || !(error instanceof BlobStoreUnavailableError) || error.fault === 'misconfigured')
        throw error;
      await second.check(blobCheckMs).catch(() => {
        throw error;
      });
      logger.warn({ err: error }, 'the blob store is down: blobs are read from the second one');
    }
  };
  await untilBlobStore(place, attempt, { waitMs: config.startWaitMs, logger });
}
