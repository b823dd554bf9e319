import { type AuditSource, serverSource } from '../../audit/audit-event.ts';
import { createAuditRepository } from '../../audit/audit-repository.ts';
import { runFirst } from '../../platform/db/connection-gate.ts';
import type { Database } from '../../platform/db/database.ts';
import type { Lifecycle } from '../../platform/lifecycle/lifecycle.ts';
import type { Logger } from '../../platform/logger/logger.ts';
import type { Metrics } from '../../platform/telemetry/metrics.ts';
import { endLostUpdates, noteEnded } from '../lost-leases.ts';
import { createDatabaseIdentityRepository } from './database-identity-repository.ts';
import type { DatabaseMemory, SeenDatabase } from './database-memory.ts';

const lookEveryMs = 1_000;

interface Parts {
  readonly db: Database;
  readonly databaseMemory: DatabaseMemory;
  readonly lifecycle: Lifecycle;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/**
 * Checks the database now and then every second. After a restore or a failover, acknowledged writes may be missing: all active updates end.
 */
export async function startDatabaseWatch(parts: Parts): Promise<void> {
  const { db, lifecycle, logger } = parts;
  const { isKnown } = await createDatabaseIdentityRepository(db).read(null);
  if (!isKnown)
    logger.warn(
      'Postgres does not report its system identifier or timeline: run `holdfast admin after-restore` after each failover that may have lost writes',
    );
  await lookAtDatabase(parts);
  let looking: Promise<void> | null = null;
  const timer = setInterval(() => {
    looking ??= runFirst(() => lookAtDatabase(parts))
      .catch((error: unknown) => logger.debug({ err: error }, 'the database could not be checked'))
      .finally(() => {
        looking = null;
      });
  }, lookEveryMs);
  timer.unref();
  lifecycle.onClose('work', 'database watch', async () => {
    clearInterval(timer);
    await looking;
  });
}

/** Ends all active updates if the database is another one than before, or at an earlier point than this process has seen. */
export async function lookAtDatabase({ db, databaseMemory, logger, metrics }: Omit<Parts, 'lifecycle'>): Promise<void> {
  const { seen } = databaseMemory;
  const identity = createDatabaseIdentityRepository(db);
  const present = await identity.read(seen);
  const { change } = present;
  if (change === 'none') {
    databaseMemory.remember(present);
    return;
  }
  const ended = await endUpdatesAfterLoss(db, { isOrdered: false, why: change, seen, source: serverSource });
  databaseMemory.remember(await identity.read(null));
  if (ended === null) return;
  metrics.databaseChanges.inc();
  logger.error(
    { ended, change },
    'the database was restored or has failed over: active updates end, and their stacks need `pulumi refresh`',
  );
  for (const update of await endLostUpdates(db)) noteEnded({ logger, metrics }, update);
}

/** For frequent calls: checks once for all concurrent callers. */
export function lookTogether(parts: Omit<Parts, 'lifecycle'>): Promise<void> {
  return parts.databaseMemory.lookTogether(() => lookAtDatabase(parts));
}

/**
 * Ends the leases of all active updates if the database is another one than before, or at an earlier point than `seen`, or if it `isOrdered`. Returns how many there were;
 * null if there was no reason. They are cancelled by `endLostUpdates`.
 */
export function endUpdatesAfterLoss(
  db: Database,
  {
    isOrdered,
    why,
    seen = null,
    source,
  }: {
    readonly isOrdered: boolean;
    readonly why: string;
    readonly seen?: SeenDatabase | null;
    readonly source: AuditSource;
  },
): Promise<number | null> {
  return db.inTransaction(async (tx) => {
    const ended = await createDatabaseIdentityRepository(tx).note(isOrdered, seen);
    if (ended !== null)
      await createAuditRepository(tx).insert(source, {
        action: 'database.loss',
        organization: null,
        object: 'database',
        details: { updates: ended, why },
      });
    return ended;
  });
}
