import { createStorageRepository } from '../../shared/access/quotas/storage-repository.ts';
import { createAuditChainRepository } from '../../shared/audit/audit-chain-repository.ts';
import { createAuditSendingRepository } from '../../shared/audit/audit-sending-repository.ts';
import { backupTasks, readBackupStatus } from '../../shared/backup/backup-status.ts';
import { createArchivingRepository } from '../../shared/events/archiving-repository.ts';
import type { QueueName } from '../../shared/jobs/queue-names.ts';
import {
  type BackgroundTaskRepository,
  createBackgroundTaskRepository,
} from '../../shared/platform/background-tasks/background-task-repository.ts';
import { nextTime, overdueMs } from '../../shared/platform/config/schedule.ts';
import { ConflictError, NotFoundError } from '../../shared/platform/errors/errors.ts';
import { createProcessRepository } from '../../shared/platform/processes/process-repository.ts';
import { createDueIndexRepository } from '../../shared/search/due-index-repository.ts';
import { createVersionRepository } from '../../shared/state/version-repository.ts';
import { createDeliveryRepository } from '../../shared/webhooks/delivery-repository.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import { httpUrl } from '../platform/http/http-url.ts';
import { createMigrationListRepository } from './migration-list-repository.ts';
import { createOperatorQueryRepository, type LockRow } from './operator-query-repository.ts';
import { PartProbe } from './part-health.ts';

const probeMs = 2_000;
const maxProcesses = 500;
const maxJobs = 50;
const maxCounted = 10_000;
const maxTables = 12;
const storageDays = 90;
const maxMigrations = 10;
const maxBackups = 50;
/** The task that makes backups runs every minute. */
const unattendedMs = 10 * 60_000;

/** Reads run one after another, because the pool is for the calls of clients. */
export class OperatorQueries {
  readonly #context: ApiContext;
  readonly #database: PartProbe;
  readonly #blobs: PartProbe;
  readonly #queue: PartProbe;

  constructor(context: ApiContext) {
    this.#context = context;
    this.#database = new PartProbe((limitMs) => context.db.ping(limitMs), probeMs);
    this.#blobs = new PartProbe((limitMs) => context.blobs.check(limitMs), probeMs);
    this.#queue = new PartProbe((limitMs) => context.payloads.check(limitMs), probeMs);
  }

  /** The services as this process reaches them, and all processes. */
  async health() {
    const { jobQueueView, config, db } = this.#context;
    const [database, blobs, queue] = await Promise.all([
      this.#database.probe(),
      this.#blobs.probe(),
      this.#queue.probe(),
    ]);
    const [processes, server] = database.isUp
      ? await Promise.all([
          createProcessRepository(db).list(maxProcesses),
          createMigrationListRepository(db).readServer(),
        ])
      : [[], null];
    return {
      database: { ...database, ...(server && { ...server, startedAt: server.startedAt.toISOString() }) },
      blobs: { ...blobs, kind: config.blobs.kind },
      /** Null: jobs run in the process that requests them. */
      queue: jobQueueView ? queue : null,
      pool: this.#context.db.poolState(),
      processes: processes.map(({ seenAt, startedAt, ...row }) => ({
        ...row,
        startedAt: startedAt.toISOString(),
        seenAt: seenAt.toISOString(),
      })),
    };
  }

  /** Without Redis, the jobs of this process. */
  async queues() {
    const { jobQueueView, dispatcher } = this.#context;
    if (!jobQueueView) {
      const { queues } = dispatcher.state();
      const here = Object.entries(queues).map(([name, state]) => ({ name, ...state, workers: null, jobs: [] }));
      return { redis: null, queues: here };
    }
    const { queues, redis } = await jobQueueView.overview(maxJobs);
    const iso = (time: Date | null) => time?.toISOString() ?? null;
    return {
      redis,
      queues: queues.map(({ jobs, ...queue }) => ({
        ...queue,
        jobs: jobs.map(({ addedAt, endedAt, startedAt, ...job }) => ({
          ...job,
          addedAt: iso(addedAt),
          startedAt: iso(startedAt),
          endedAt: iso(endedAt),
        })),
      })),
    };
  }

  /** Throws ConflictError for a job that only its caller can repeat, or that is unknown by now. */
  async retryJob(queue: QueueName, id: string, audit: AuditTrail): Promise<void> {
    const { jobQueueView, db, dispatcher } = this.#context;
    const failed = await jobQueueView?.findFailed(queue, id);
    if (!failed) throw noJob();
    const { name, retry } = failed;
    if (!retry)
      throw new ConflictError(
        `The job ${name} cannot be rerun here: only its caller can retry it, or it failed over an hour ago`,
      );
    // Running the job twice does no harm; a lost job would wait for the next sweep.
    await dispatcher.enqueue(retry);
    await audit.record(db, { organization: null, object: id, details: { queue, job: name } });
    await jobQueueView?.discard(queue, id);
  }

  async discardJob(queue: QueueName, id: string, audit: AuditTrail): Promise<void> {
    const { jobQueueView, db } = this.#context;
    const failed = await jobQueueView?.findFailed(queue, id);
    if (!failed) throw noJob();
    await audit.record(db, { organization: null, object: id, details: { queue, job: failed.name } });
    await jobQueueView?.discard(queue, id);
  }

  /** The oldest first, in all organizations. */
  async locks(after: readonly [string, string] | null, limit: number) {
    const rows = await createOperatorQueryRepository(this.#context.db).listLocks(after, limit + 1);
    const last = rows.length > limit ? rows[limit - 1] : undefined;
    const next: readonly [string, string] | null = last ? [last.position, last.updateId] : null;
    return { items: rows.slice(0, limit).map(lockView), next };
  }

  /** The longest update per stack and day. */
  async slow(days: number, limit: number) {
    const rows = await createOperatorQueryRepository(this.#context.db).listSlow(days, limit);
    return { items: rows.map(({ endedAt, ...row }) => ({ ...row, endedAt: endedAt.toISOString() })), next: null };
  }

  async storage() {
    const storage = createStorageRepository(this.#context.db);
    const databaseBytes = await storage.readDatabaseBytes();
    const tables = await storage.listTables(maxTables);
    return { databaseBytes, tables, days: await storage.listDays(storageDays) };
  }

  /** The largest first. */
  async organizations(after: readonly [number, string] | null, limit: number) {
    const position = after && { bytes: after[0], organization: after[1] };
    const rows = await createStorageRepository(this.#context.db).list(position, limit + 1);
    const last = rows.length > limit ? rows[limit - 1] : undefined;
    const next: readonly [number, string] | null = last ? [last.bytes, last.organization] : null;
    const items = rows
      .slice(0, limit)
      .map(({ measuredAt, ...row }) => ({ ...row, measuredAt: measuredAt.toISOString() }));
    return { items, next };
  }

  /** Scheduled backups as the tasks last saw them, the newest first. */
  async backups() {
    const runs = createBackgroundTaskRepository(this.#context.db);
    const { backups: found, verification } = await readBackupStatus(runs);
    const tasks = await runs.list();
    const now = await runs.readClock();
    const { isFenced } = this.#context.readOnly;
    const unattendedSince = found && !isFenced ? findUnattended(tasks, now) : null;
    const failureOf = (task: string) => {
      const { error = null, failedAt = null } = tasks.find(({ name }) => name === task) ?? {};
      return failedAt && { at: failedAt.toISOString(), error };
    };
    const iso = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString());
    return {
      /** Null: no worker makes backups. */
      plan:
        found && !isFenced && unattendedSince === null
          ? {
              ...{ location: found.location, keep: found.keep, schedule: found.schedule },
              nextAt: nextTime(found.schedule)?.toISOString() ?? null,
            }
          : null,
      /**
       * No worker has checked since then whether a backup is due, although one did before. Null: one does, none ever did, or another site
       * has taken over.
       */
      unattendedSince: unattendedSince?.toISOString() ?? null,
      backups: (found?.backups ?? [])
        .slice(0, maxBackups)
        .map(({ verifiedAt, ...backup }) => ({ ...backup, verifiedAt: iso(verifiedAt) })),
      /** Includes deleted backups. */
      lastVerifiedAt: iso(found?.lastVerifiedAt ?? null),
      /** The last verification by a worker. */
      verification: verification?.at ? { ...verification, at: new Date(verification.at).toISOString() } : null,
      createFailure: failureOf(backupTasks.create),
      verifyFailure: failureOf(backupTasks.verify),
    };
  }

  /** Backlogs are counted up to a limit. */
  async maintenance() {
    const { compactions, config, db, documentChecks, readOnly, rollbackState } = this.#context;
    const { isExported, receiverUrl } = config.audit;
    const tasks = createBackgroundTaskRepository(db);
    const sending = createAuditSendingRepository(db);
    const runs = await tasks.list();
    const archiving = await createArchivingRepository(db).countWaiting();
    const encode = await createVersionRepository(db).countDue(maxCounted);
    const index = await createDueIndexRepository(db).countDue();
    const deliveries = await createDeliveryRepository(db).countDue();
    const unchainedSeconds = await createAuditChainRepository(db).readUnchainedSeconds();
    const unsentSeconds = receiverUrl === null ? null : await sending.readWaitingSeconds('sent');
    const unexportedSeconds = isExported ? await sending.readWaitingSeconds('exported') : null;
    const migrations = await createMigrationListRepository(db).list(maxMigrations);
    const journals = await compactions.countFaultyStacks();
    const documents = await documentChecks.readStatistics();
    const { backups } = await readBackupStatus(tasks);
    const now = await tasks.readClock();
    const newest = backups?.backups[0];
    const isMade = newest && !readOnly.isFenced && findUnattended(runs, now) === null;
    const iso = (time: Date | null) => time?.toISOString() ?? null;
    return {
      runs: runs.map(({ endedAt, failedAt, seenAt: _seenAt, startedAt, ...run }) => ({
        ...run,
        startedAt: iso(startedAt),
        endedAt: iso(endedAt),
        failedAt: iso(failedAt),
      })),
      waiting: { archiving, encode, index, deliveries: deliveries.count },
      /** The oldest event that is not chained, sent or exported yet; null: events are not sent or exported. */
      audit: { unchainedSeconds, unsentSeconds, unexportedSeconds },
      faults: {
        /** Stacks that accept no changes because of an invalid journal. */
        blockedStacks: journals.error,
        damagedDocuments: documents.damaged,
        isOutgoingHeld: rollbackState.isOutgoingHeld,
        /** Null: no backups are made. */
        backupOverdueSeconds: isMade
          ? overdueMs(backups.schedule, new Date(newest.takenAt), new Date(now)) / 1000
          : null,
      },
      migrations: migrations.map(({ at, name }) => ({ name, at: at.toISOString() })),
    };
  }
}

/** Null: a worker checks whether a backup is due. */
function findUnattended(runs: Awaited<ReturnType<BackgroundTaskRepository['list']>>, now: number): Date | null {
  const { seenAt = null } = runs.find(({ name }) => name === backupTasks.create) ?? {};
  return seenAt !== null && now - seenAt.getTime() > unattendedMs ? seenAt : null;
}

function noJob(): NotFoundError {
  return new NotFoundError('There is no failed job with this id');
}

function lockView({ ciUrl, expiresAt, position: _position, since, ...row }: LockRow) {
  return { ...row, ciUrl: httpUrl(ciUrl), since: since.toISOString(), expiresAt: expiresAt?.toISOString() ?? null };
}
