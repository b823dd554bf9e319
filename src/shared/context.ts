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
import { openStores } from './open-stores.ts';
import type { BlobStore } from './platform/blobs/blob-store.ts';
import type { DataOwnership } from './platform/claim/data-dir-claim.ts';
import type { Config } from './platform/config/config.ts';
import { type Database, openDatabase } from './platform/db/database.ts';
import type { Queryable } from './platform/db/sql.ts';
import { Lifecycle } from './platform/lifecycle/lifecycle.ts';
import { createLogger, type Logger } from './platform/logger/logger.ts';
import { Outgoing } from './platform/outgoing/outgoing.ts';
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
import type { Registration } from './secrets/open-master-keys.ts';
import { StackCipher } from './secrets/stack-cipher.ts';
import { createStackRepository, type StackRepository } from './stacks/stack-repository.ts';
import { BaseUrns } from './state/journal/change-limits/base-urns.ts';
import { backlogSteps, JournalBacklog } from './state/journal/incremental/journal-backlog.ts';
import { JournalWriter } from './state/journal/journal-writer.ts';
import { createStateParts, type StateOverrides, type StateParts } from './state/state-parts.ts';
import { StatisticsRecorder } from './statistics/statistics-recorder.ts';
import { findUnusualOfUpdate } from './statistics/unusual-updates.ts';
import { createHistoryRepository, type HistoryRepository } from './updates/history-repository.ts';
import { sendQueueNotifications } from './updates/queue-notifications.ts';
import { RollbackState } from './updates/rollback-detection/rollback-state.ts';
import { createUpdateRepository, type UpdateRepository } from './updates/update-repository.ts';
import { DeliveryAttempts } from './webhooks/delivery-attempt.ts';

/** Both roles share these parts, created once per process and passed explicitly. */
export interface AppContext extends StateParts, AsyncDisposable {
  readonly config: Config;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly lifecycle: Lifecycle;
  readonly db: Database;
  readonly rollbackState: RollbackState;
  readonly readOnly: ReadOnlyMode;
  readonly blobs: BlobStore;
  /** Null if blobs are written to one store. */
  readonly mirror: { readonly main: BlobStore; readonly second: BlobStore } | null;
  /** Records in the audit log that another site has taken over. */
  readonly recordReplaced: (tx: Queryable, details: Readonly<Record<string, unknown>>) => Promise<unknown>;
  /** The stores with the mark of the site. */
  readonly siteStores: readonly SiteStore[];
  readonly payloads: PayloadStore;
  readonly identity: IdentityRepository;
  readonly stacks: StackRepository;
  readonly updates: UpdateRepository;
  readonly history: HistoryRepository;
  readonly events: EventRepository;
  readonly eventSegments: EventSegments;
  readonly eventReader: EventReader;
  readonly statistics: StatisticsRecorder;
  readonly policyArchives: PolicyArchives;
  readonly encryptionKeys: EncryptionKeyRepository;
  readonly cipher: StackCipher;
  readonly indexer: StateIndexer;
  readonly journalWriter: JournalWriter;
  readonly eventWriter: EventWriter;
  /** Notifies all replicas, and thus the open pages of users, of commits. */
  readonly notifications: NotificationSender;
  readonly quotas: Quotas;
  /** Calls servers whose URLs users provide. */
  readonly outgoing: Outgoing;
  readonly secrets: EncryptedSecrets;
  readonly deliveryAttempts: DeliveryAttempts;
  /** Checked before a write is acknowledged; null if no other server can take over the data. */
  readonly dataOwnership: DataOwnership | null;
}

/** A caller, e.g. a test, may provide these parts itself. */
export interface ContextOverrides extends StateOverrides {
  readonly logger?: Logger;
  readonly blobs?: BlobStore;
  readonly payloads?: PayloadStore;
  readonly outgoing?: Outgoing;
  readonly dataOwnership?: DataOwnership | undefined;
  /** Closes the opened parts. It belongs to the caller, who closes it if the start fails. */
  readonly lifecycle?: Lifecycle;
  /** Replaces the ring of the master keys. Null even if keys are needed: encrypted data then cannot be read. */
  readonly ring?: KeyRing | null;
  readonly registersKeys?: Registration;
}

/**
 * `databaseUrl` and `masterKeys` are separate from the configuration because embedded mode generates them. A process that decrypts no
 * secrets and no encrypted documents needs no master keys. Throws ConfigError if they are needed and missing. Disposing closes everything
 * in phases.
 */
export async function createContext(
  config: Config,
  secrets: { databaseUrl: string; masterKeys: string | null },
  overrides: ContextOverrides = {},
): Promise<AppContext> {
  const logger = overrides.logger ?? createLogger({ level: config.logLevel });
  const metrics = createMetrics();
  const { lifecycle = new Lifecycle(logger, config) } = overrides;
  const db = await openDatabase({ ...config.database, url: secrets.databaseUrl });
  lifecycle.onClose('stores', 'database', () => db.close());
  const notifications = new NotificationSender({ db, logger });
  lifecycle.onClose('stores', 'notifications', () => notifications.close());
  sendQueueNotifications(db, notifications.channel, logger);
  const encryptionKeys = createEncryptionKeyRepository(db);
  const { registersKeys: registers = true } = overrides;
  const ringParts = { encryptionKeys, logger, masterKeyRows: createMasterKeyRepository(db), registers };
  const opening = overrides.ring === undefined ? openKeyRing(config, secrets.masterKeys, ringParts) : overrides.ring;
  const ring = await Promise.resolve(opening).catch(async (error: unknown) => {
    await lifecycle.close();
    throw error;
  });
  const dataKeys = new DataKeys(encryptionKeys, ring, config.encryption.dataKeySeconds);
  const readOnly = new ReadOnlyMode();
  const stores = await openStores({ config, db, lifecycle, logger, metrics, readOnly }, overrides.blobs);
  const { blobs, mirror } = stores;
  const outgoing = overrides.outgoing ?? new Outgoing({ allow: config.outgoingAllow });
  const encryptedSecrets = new EncryptedSecrets(ring);
  const stacks = createStackRepository(db);
  const updates = createUpdateRepository(db);
  const rollbackState = new RollbackState();
  const foundation = {
    config,
    db,
    rollbackState,
    lifecycle,
    logger,
    blobs,
    sources: stores.sources,
    dataKeys,
    repairLater: stores.repairLater,
    readOnly,
    stacks,
    updates,
  };
  const state = createStateParts(foundation, overrides);
  const { checkpoints, copies, documents, documentReader } = state;
  const events = createEventRepository(db);
  const read = { documents, copies, readOnly, logger };
  const eventSegments = new EventSegments({ rows: createEventSegmentRepository(db), ...read });
  const policyArchives = new PolicyArchives({ rows: createPolicyArchiveRepository(db), ...read });
  const payloads = overrides.payloads ?? new MemoryPayloadStore(config.limits.inFlight);
  lifecycle.onClose('queues', 'payload store', () => payloads.close());
  registerContextGauges(metrics, {
    config,
    db,
    rollbackState,
    readOnly,
    hasSecondStore: mirror !== null,
    payloads,
    ...state,
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
    rollbackState,
    readOnly,
    blobs,
    mirror,
    siteStores: stores.siteStores,
    recordReplaced,
    payloads,
    identity: createIdentityRepository(db),
    stacks,
    updates,
    ...state,
    history: createHistoryRepository(db),
    events,
    eventSegments,
    eventReader,
    statistics: new StatisticsRecorder({ db, eventReader, checkpoints, documentReader }),
    policyArchives,
    encryptionKeys,
    cipher: new StackCipher(dataKeys),
    indexer: new StateIndexer({ db, checkpoints, documentReader }),
    journalWriter: new JournalWriter({
      changeLimits: {
        db,
        baseUrns: new BaseUrns({ checkpoints, documentReader }),
        previewed: new EventsOfPreviews({ events: eventReader }),
      },
      rollbackState,
      journal: state.journal,
      backlog: new JournalBacklog(...backlogSteps(config.redisUrl !== null)),
      snapshotEntries: config.journalSnapshotEntries,
      metrics,
    }),
    eventWriter: new EventWriter(events, config.limits.maxEventBytes, ({ stackId, updateId }) =>
      notifications.notify({ kind: 'events.appended', organizationId: null, stackId, updateId }),
    ),
    notifications,
    quotas,
    outgoing,
    secrets: encryptedSecrets,
    deliveryAttempts: new DeliveryAttempts({
      ...{ db, outgoing, secrets: encryptedSecrets, logger },
      findUnusual: (updateId) => findUnusualOfUpdate(db, updateId),
    }),
    dataOwnership: overrides.dataOwnership ?? null,
    [Symbol.asyncDispose]: () => lifecycle.close(),
  };
}

/** See AppContext. */
export const recordReplaced: AppContext['recordReplaced'] = (tx, details) =>
  createAuditRepository(tx).insert(serverSource, {
    ...{ action: 'site.replace', outcome: 'refused', organization: null, object: 'installation', details },
  });
