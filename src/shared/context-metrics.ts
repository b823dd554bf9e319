import { createAuditChainRepository } from './audit/audit-chain-repository.ts';
import { createAuditSendingRepository } from './audit/audit-sending-repository.ts';
import { createBundleRepository } from './bundle/bundle-repository.ts';
import { createDriftRepository } from './drift/drift-repository.ts';
import { createArchivingRepository } from './events/archiving-repository.ts';
import { createCopyQueueRepository } from './platform/blobs/second/copy-queue-repository.ts';
import type { Config } from './platform/config/config.ts';
import type { Database } from './platform/db/database.ts';
import type { BodyBuffer } from './platform/payloads/body-buffer.ts';
import type { ByteBudget } from './platform/payloads/byte-budget.ts';
import type { PayloadStore } from './platform/payloads/payload-store.ts';
import type { ReadOnlyMode } from './platform/read-only/read-only-mode.ts';
import type { Metrics } from './platform/telemetry/metrics.ts';
import { createDueIndexRepository } from './search/due-index-repository.ts';
import type { CompactionRepository } from './state/journal/compaction-repository.ts';
import type { IncrementalCompaction } from './state/journal/incremental/incremental-compaction.ts';
import type { OpenReplays } from './state/journal/incremental/open-replays.ts';
import type { RollbackState } from './updates/rollback-detection/rollback-state.ts';
import { createDeliveryRepository } from './webhooks/delivery-repository.ts';

/** Each count reads up to 200,000 rows. */
const archivingCountEveryMs = 60_000;
const driftCountEveryMs = 60_000;
const indexCountEveryMs = 10_000;
const bundleCountEveryMs = 10_000;

interface MeasuredParts {
  readonly config: Config;
  readonly db: Database;
  readonly rollbackState: RollbackState;
  readonly readOnly: ReadOnlyMode;
  readonly hasSecondStore: boolean;
  readonly payloads: PayloadStore;
  readonly bufferedBodyBytes: ByteBudget;
  readonly bodyBuffer: BodyBuffer;
  readonly compactions: CompactionRepository;
  readonly incrementalCompaction: IncrementalCompaction;
  readonly openReplays: OpenReplays;
}

/** The metrics are read at each scrape. */
export function registerContextGauges(metrics: Metrics, parts: MeasuredParts): void {
  registerProcessGauges(metrics, parts);
  registerDatabaseGauges(metrics, parts);
}

function registerProcessGauges(
  metrics: Metrics,
  {
    bodyBuffer,
    incrementalCompaction,
    db,
    bufferedBodyBytes,
    rollbackState,
    openReplays,
    payloads,
    readOnly,
  }: MeasuredParts,
): void {
  metrics.gauge(
    'holdfast_journals_waiting_incremental',
    'Journals of running updates with new entries that wait for incremental compaction.',
    () => incrementalCompaction.waiting,
  );
  metrics.gauge(
    'holdfast_open_replays_bytes',
    'Memory of the replays of running updates that are kept open between compactions.',
    () => openReplays.bytes,
  );
  metrics.gauge('holdfast_payload_store_bytes', 'Bytes of request bodies waiting for workers.', () =>
    payloads.bytesHeld(),
  );
  metrics.gauge(
    'holdfast_buffered_body_bytes',
    'Memory reserved for decompressed request bodies.',
    () => bufferedBodyBytes.used,
  );
  metrics.gauge(
    'holdfast_control_body_bytes',
    'Bytes received of control call bodies above 64 KiB.',
    () => bodyBuffer.arrivals.bytes,
  );
  metrics.gauge(
    'holdfast_buffered_bodies_waiting',
    'Bodies waiting to be decompressed.',
    () => bufferedBodyBytes.waiting,
  );
  metrics.gauge('holdfast_read_only', '1 while the installation is read-only.', () => (readOnly.current ? 1 : 0));
  metrics.gauge('holdfast_site_fenced', '1 while writes are refused because another site has taken over.', () =>
    readOnly.isFenced ? 1 : 0,
  );
  metrics.gauge('holdfast_outgoing_paused', '1 while a restored database sends no webhooks and audit events.', () =>
    rollbackState.isOutgoingHeld ? 1 : 0,
  );
  // Registered before the metrics that query the database, so that the pool's values do not count those queries.
  metrics.gauge('holdfast_database_connections_acquired', 'Pool connections in use.', () => db.poolState().acquired);
  metrics.gauge('holdfast_database_connections_idle', 'Pool connections idle.', () => db.poolState().idle);
  metrics.gauge(
    'holdfast_database_waiting',
    'Callers waiting for a pool connection, or for another attempt after a lock timeout.',
    () => db.poolState().waiting,
  );
}

function registerDatabaseGauges(metrics: Metrics, { compactions, config, db, hasSecondStore }: MeasuredParts): void {
  if (hasSecondStore)
    metrics.gaugesByQuery(
      {
        blobs: {
          name: 'holdfast_second_store_waiting_blobs',
          help: 'Blobs that wait to be copied to the second store or deleted there.',
        },
        bytes: { name: 'holdfast_second_store_waiting_bytes', help: 'Known bytes of these blobs.' },
        seconds: { name: 'holdfast_second_store_lag_seconds', help: 'How long the oldest of these blobs has waited.' },
      },
      async () => createCopyQueueRepository(db).readLag(),
    );
  metrics.gaugeByQuery(
    'holdfast_stacks_with_journal_errors',
    'Stacks whose state lacks journal entries. `invalid-entry`: no updates until an operator has decided.',
    'reason',
    async () => {
      const { error, missingEntries, unknownKind } = await compactions.countFaultyStacks();
      return { 'invalid-entry': error, 'missing-entries': missingEntries, 'unknown-kind': unknownKind };
    },
  );
  metrics.gaugeByQuery(
    'holdfast_event_archiving_updates',
    'Ended updates whose events may still be rows, counted up to 100,000 every minute.',
    'queue',
    async () => ({ recent: await createArchivingRepository(db).countWaiting() }),
    archivingCountEveryMs,
  );
  metrics.gaugeByQuery(
    'holdfast_audit_waiting_seconds',
    'Age of the oldest event of the audit log that is not chained yet, and of the oldest chained batch that is not sent or exported.',
    'step',
    async () => ({
      chain: await createAuditChainRepository(db).readUnchainedSeconds(),
      ...(config.audit.receiverUrl === null
        ? {}
        : { send: await createAuditSendingRepository(db).readWaitingSeconds('sent') }),
      ...(config.audit.isExported
        ? { export: await createAuditSendingRepository(db).readWaitingSeconds('exported') }
        : {}),
    }),
  );
  metrics.gaugesByQuery(
    {
      count: {
        name: 'holdfast_webhook_deliveries_due',
        help: 'Deliveries to webhooks that are due now, up to 10,000.',
      },
      seconds: { name: 'holdfast_webhook_oldest_due_seconds', help: 'How long the oldest of these deliveries is due.' },
    },
    () => createDeliveryRepository(db).countDue(),
  );
  metrics.gaugeByQuery(
    'holdfast_stacks_drifted',
    'Stacks whose last drift check found drift that nothing has repaired since, counted every minute.',
    'state',
    async () => ({ drifted: await createDriftRepository(db).countDrifted() }),
    driftCountEveryMs,
  );
  if (config.bundleUrl !== null)
    metrics.gaugesByQuery(
      {
        stacks: {
          name: 'holdfast_bundle_waiting_stacks',
          help: 'Stacks whose newest version the break-glass bundle lacks, counted every 10 seconds.',
        },
        seconds: { name: 'holdfast_bundle_lag_seconds', help: 'How long the first of these stacks has waited.' },
        errors: {
          name: 'holdfast_bundle_failed_stacks',
          help: 'Stacks whose last write to the break-glass bundle failed.',
        },
      },
      () => createBundleRepository(db).readLag(),
      bundleCountEveryMs,
    );
  metrics.gaugeByQuery(
    'holdfast_stacks_to_index',
    'Stacks whose newest state is not indexed yet, counted up to 10,000 every 10 seconds.',
    'state',
    async () => ({ due: await createDueIndexRepository(db).countDue() }),
    indexCountEveryMs,
  );
}
