import { type BlobRepository, createBlobRepository } from './checkpoints/blob-repository.ts';
import { type CheckpointRepository, createCheckpointRepository } from './checkpoints/checkpoint-repository.ts';
import { CheckpointWriter } from './checkpoints/checkpoint-writer.ts';
import { DeploymentImporter } from './checkpoints/deployment-importer.ts';
import { DocumentStore } from './checkpoints/document-store.ts';
import { StateReader } from './checkpoints/state-reader.ts';
import { WholeBodies } from './checkpoints/whole-bodies.ts';
import { createEventRepository, type EventRepository } from './events/event-repository.ts';
import { EventWriter } from './events/event-writer.ts';
import { createIdentityRepository, type IdentityRepository } from './identity/identity-repository.ts';
import { createFoldPointRepository } from './journal/fold-point-repository.ts';
import { JournalFolder } from './journal/journal-folder.ts';
import { createJournalRepository, type JournalRepository } from './journal/journal-repository.ts';
import { JournalWriter } from './journal/journal-writer.ts';
import type { ReplayRunner } from './journal/replay-runner.ts';
import { ThreadedReplayRunner } from './journal/threaded-replay-runner.ts';
import type { BlobStore } from './platform/blobs/blob-store.ts';
import { openBlobStore } from './platform/blobs/blob-stores.ts';
import { MeteredBlobStore } from './platform/blobs/metered-blob-store.ts';
import type { Config } from './platform/config/config.ts';
import { type Database, openDatabase } from './platform/db/database.ts';
import { Lifecycle } from './platform/lifecycle/lifecycle.ts';
import { createLogger, type Logger } from './platform/logger/logger.ts';
import type { HandoverStore } from './platform/queue/handover-store.ts';
import { MemoryHandoverStore } from './platform/queue/memory-handover-store.ts';
import { createMetrics, type Metrics } from './platform/telemetry/metrics.ts';
import { createEncryptionKeyRepository, type EncryptionKeyRepository } from './secrets/encryption-key-repository.ts';
import { KeyRing } from './secrets/key-ring.ts';
import { StackCipher } from './secrets/stack-cipher.ts';
import { createStackRepository, type StackRepository } from './stacks/stack-repository.ts';
import { createUpdateRepository, type UpdateRepository } from './updates/update-repository.ts';

/** Everything that both roles share, made once per process and passed by hand. */
export interface AppContext extends AsyncDisposable {
  readonly config: Config;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly lifecycle: Lifecycle;
  readonly db: Database;
  readonly blobs: BlobStore;
  readonly handover: HandoverStore;
  readonly identity: IdentityRepository;
  readonly stacks: StackRepository;
  readonly updates: UpdateRepository;
  readonly checkpoints: CheckpointRepository;
  readonly blobRows: BlobRepository;
  readonly journal: JournalRepository;
  readonly events: EventRepository;
  readonly encryptionKeys: EncryptionKeyRepository;
  readonly cipher: StackCipher;
  readonly documents: DocumentStore;
  readonly states: StateReader;
  readonly folder: JournalFolder;
  readonly writer: CheckpointWriter;
  readonly wholeBodies: WholeBodies;
  readonly importer: DeploymentImporter;
  readonly journalWriter: JournalWriter;
  readonly eventWriter: EventWriter;
}

/** Parts that a caller brings itself, e.g. a test. */
export interface ContextOverrides {
  readonly logger?: Logger;
  readonly blobs?: BlobStore;
  readonly handover?: HandoverStore;
  readonly largeReplays?: ReplayRunner;
}

/**
 * Opens database and stores and wires the shared services. `databaseUrl` and `masterKeys` come beside the configuration
 * since the embedded shape makes them. Disposing closes everything in phases.
 */
export async function createContext(
  config: Config,
  secrets: { databaseUrl: string; masterKeys: string },
  overrides: ContextOverrides = {},
): Promise<AppContext> {
  const logger = overrides.logger ?? createLogger({ level: config.logLevel });
  const metrics = createMetrics();
  const lifecycle = new Lifecycle(logger, config.shutdownMs);
  const ring = new KeyRing(secrets.masterKeys);
  const db = await openDatabase({
    url: secrets.databaseUrl,
    poolSize: config.database.poolSize,
    statementTimeoutMs: config.database.statementTimeoutMs,
  });
  lifecycle.onClose('stores', 'database', () => db.close());
  const blobs = new MeteredBlobStore(overrides.blobs ?? (await openBlobs(config)), metrics);
  lifecycle.onClose('stores', 'blobs', () => blobs.close());

  const stacks = createStackRepository(db);
  const updates = createUpdateRepository(db);
  const checkpoints = createCheckpointRepository(db);
  const blobRows = createBlobRepository(db);
  const journal = createJournalRepository(db);
  const encryptionKeys = createEncryptionKeyRepository(db);
  const documents = new DocumentStore(blobs, blobRows, config.limits.inlineBytes);
  const replayThread = new ThreadedReplayRunner();
  lifecycle.onClose('stores', 'replay thread', () => replayThread.close());
  const folder = new JournalFolder({
    updates,
    checkpoints,
    documents,
    journal,
    foldPoints: createFoldPointRepository(db),
    largeReplays: overrides.largeReplays ?? replayThread,
  });
  const events = createEventRepository(db);
  const { maxBatchBytes, maxBodyBytes } = config.limits;
  const wholeBodies = new WholeBodies(Math.min(maxBatchBytes, maxBodyBytes));

  const handover = overrides.handover ?? new MemoryHandoverStore(config.limits.inFlightBytes);
  metrics.gauge('holdfast_handover_bytes', 'Body bytes waiting for workers.', () => handover.bytesHeld());
  metrics.gauge('holdfast_database_connections_acquired', 'Pool connections in use.', () => db.poolState().acquired);
  metrics.gauge('holdfast_database_connections_idle', 'Pool connections idle.', () => db.poolState().idle);
  metrics.gauge('holdfast_database_waiting', 'Callers waiting for a pool connection.', () => db.poolState().waiting);

  return {
    config,
    logger,
    metrics,
    lifecycle,
    db,
    blobs,
    handover,
    identity: createIdentityRepository(db),
    stacks,
    updates,
    checkpoints,
    blobRows,
    journal,
    events,
    encryptionKeys,
    cipher: new StackCipher(encryptionKeys, ring),
    documents,
    folder,
    states: new StateReader({
      stacks,
      updates,
      checkpoints,
      documents,
      folder,
      foldLarge: (updateId) => folder.fold(updateId),
    }),
    writer: new CheckpointWriter({ updates, checkpoints, documents, wholeBodies, maxBodyBytes }),
    wholeBodies,
    importer: new DeploymentImporter({
      db,
      updates,
      documents,
      fold: (updateId) => folder.fold(updateId),
      maxBodyBytes,
      leaseSeconds: config.leaseSeconds,
    }),
    journalWriter: new JournalWriter(journal),
    eventWriter: new EventWriter(events),
    [Symbol.asyncDispose]: () => lifecycle.close(),
  };
}

function openBlobs(config: Config): Promise<BlobStore> {
  if (config.blobs.kind === 'files') return openBlobStore({ kind: 'files', directory: config.blobs.directory });
  const { bucket, endpoint, region, forcePathStyle, requestTimeoutMs } = config.blobs;
  return openBlobStore({
    kind: 's3',
    bucket,
    region,
    forcePathStyle,
    requestTimeoutMs,
    ...(endpoint === null ? {} : { endpoint }),
  });
}
