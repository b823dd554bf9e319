import { type AuditSource, serverSource } from '../../audit/audit-event.ts';
import { createAuditRepository } from '../../audit/audit-repository.ts';
import { runFirst } from '../../platform/db/connection-gate.ts';
import type { Connection, Database } from '../../platform/db/database.ts';
import { limitLockWait } from '../../platform/db/limit-lock-wait.ts';
import type { Queryable } from '../../platform/db/sql.ts';
import type { Lifecycle } from '../../platform/lifecycle/lifecycle.ts';
import { repeat } from '../../platform/lifecycle/repeat.ts';
import type { Logger } from '../../platform/logger/logger.ts';
import { fencedBy, type ReadOnlyMode } from '../../platform/read-only/read-only-mode.ts';
import type { Metrics } from '../../platform/telemetry/metrics.ts';
import { endRevokedLeases, noteEnded } from '../end-revoked-leases.ts';
import { createDatabaseIdentityRepository } from './database-identity-repository.ts';
import type { RollbackState, SeenDatabase } from './rollback-state.ts';

const checkEveryMs = 1_000;

interface Parts {
  readonly db: Database;
  readonly rollbackState: RollbackState;
  readonly lifecycle: Lifecycle;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly readOnly: ReadOnlyMode;
}

/**
 * Checks the database now, then every second, and on each new connection before its first use. After a restore or a failover, acknowledged
 * writes may be missing, so all active updates are ended.
 */
export async function startRollbackMonitor(parts: Parts): Promise<void> {
  const { db, lifecycle, logger } = parts;
  const { isKnown } = await createDatabaseIdentityRepository(db).read(null);
  if (!isKnown)
    logger.warn(
      'Postgres does not report its system identifier or timeline: run `holdfast admin after-restore` after each failover that may have lost writes',
    );
  watchConnections(parts);
  await checkForRollback(parts);
  const checks = repeat(
    checkEveryMs,
    () => runFirst(() => checkForRollback(parts)),
    (error) => logger.debug({ err: error }, 'the database could not be checked'),
  );
  lifecycle.onClose('work', 'database watch', checks.stop);
}

/** Without this, new writes to a restored database could move it past the position at which the loss is detected. */
export function watchConnections(parts: Omit<Parts, 'lifecycle'>): void {
  parts.db.checkConnections((connection) => compare(parts, connection));
}

/** Ends all active updates if the database is another one, or at an earlier point than this process has seen. */
export async function checkForRollback(parts: Omit<Parts, 'lifecycle'>): Promise<void> {
  const { rollbackState, db, logger, metrics } = parts;
  await db.onConnection((connection) => compare(parts, connection));
  if (!rollbackState.takeLoss()) return;
  try {
    for (const update of await endRevokedLeases(db)) noteEnded({ logger, metrics }, update);
  } catch (error) {
    rollbackState.noteLoss();
    throw error;
  }
}

/** Ends the leases of all active updates after a loss. `checkForRollback` then cancels the updates. */
async function compare(
  { rollbackState, logger, metrics, readOnly }: Omit<Parts, 'db' | 'lifecycle'>,
  connection: Connection,
): Promise<void> {
  const { seen } = rollbackState;
  const identity = createDatabaseIdentityRepository(connection);
  const present = await identity.read(seen);
  const { change, fencedSince, readOnlyReason: reason, readOnlySince: since } = present;
  rollbackState.noteOutgoing(present.isOutgoingHeld);
  const ordered = since === null || reason === null ? null : { since, reason };
  readOnly.remember(fencedSince ? fencedBy(fencedSince) : ordered);
  if (change === 'none') {
    rollbackState.remember(present);
    return;
  }
  const order = { isOrdered: false, why: change, seen, source: serverSource };
  const ended = await connection.transaction((tx) => endLeasesAfterLoss(tx, order));
  rollbackState.remember(await identity.read(null));
  if (ended === null) return;
  rollbackState.noteLoss();
  metrics.databaseChanges.inc();
  logger.error(
    { ended, change },
    'the database was restored or has failed over: active updates end, and their stacks need `pulumi state repair` and `pulumi refresh`',
  );
}

/** One check serves all concurrent callers. */
export function checkTogether(parts: Omit<Parts, 'lifecycle'>): Promise<void> {
  return parts.rollbackState.checkTogether(() => checkForRollback(parts));
}

interface LossOrder {
  readonly isOrdered: boolean;
  readonly why: string;
  readonly seen?: SeenDatabase | null;
  readonly source: AuditSource;
}

/**
 * Ends leases and counts them like `note` of the identity repository. Runs in a transaction. `endRevokedLeases` then cancels the updates.
 */
export async function endLeasesAfterLoss(tx: Queryable, order: LossOrder): Promise<number | null> {
  const { isOrdered, seen = null, source, why } = order;
  // Another attempt would take all locks again, and fail again if one of many updates is busy each time.
  await limitLockWait(tx, 0);
  const ended = await createDatabaseIdentityRepository(tx).note(isOrdered, seen);
  if (ended !== null)
    await createAuditRepository(tx).insert(source, {
      action: 'database.loss',
      organization: null,
      object: 'database',
      details: { updates: ended, why },
    });
  return ended;
}
