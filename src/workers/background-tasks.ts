import { randomUUID } from 'node:crypto';
import { bundleOf } from '../shared/bundle/bundle-location.ts';
import type { AppContext } from '../shared/context.ts';
import { createRateCounterRepository } from '../shared/identity/rate-counter-repository.ts';
import { createExchangeRepository } from '../shared/identity/trust/exchange-repository.ts';
import { createJobAdmissionRepository } from '../shared/jobs/job-admission-repository.ts';
import {
  type BackgroundTaskRepository,
  createBackgroundTaskRepository,
} from '../shared/platform/background-tasks/background-task-repository.ts';
import { createOutcomeRepository } from '../shared/platform/outcomes/outcome-repository.ts';
import { createUpdateQueueRepository } from '../shared/updates/update-queue-repository.ts';
import { measureStorage } from './access/measure-storage.ts';
import { addAuditPartitions, dropOldAudit } from './audit/audit-retention.ts';
import { chainAudit, storeAuditHeads } from './audit/chain-audit.ts';
import { exportAudit } from './audit/export-audit.ts';
import { receiverCalls, sendAudit } from './audit/send-audit.ts';
import { backUpOnSchedule } from './backup/scheduled-backup.ts';
import { verifyNewestBackup } from './backup/verify-newest.ts';
import { keepBundle } from './bundle/keep-bundle.ts';
import { clipWaits } from './clip-waits.ts';
import { evaluateDrift } from './drift/evaluate-drift.ts';
import { archiveEvents } from './events/archive-events.ts';
import { deleteEndedSignIns } from './identity/delete-sign-ins.ts';
import { deleteEndedTokens } from './identity/delete-tokens.ts';
import { type BackgroundTask, startBackgroundTask } from './platform/background-task.ts';
import { watchClock } from './platform/clock-watch.ts';
import { deleteAbandonedPacks } from './policies/delete-packs.ts';
import { deleteEmptyProjects } from './stacks/delete-projects.ts';
import { createStackDeletion } from './stacks/delete-stacks.ts';
import { compactEndedUpdates, deleteKeptJournals } from './state/compact-journals.ts';
import { encodeInSlices } from './state/encode-versions.ts';
import { reconcileInSlices } from './state/reconcile.ts';
import { sweepRetention } from './state/retention/sweep-retention.ts';
import { secondStoreTasks } from './state/second-store-tasks.ts';
import { sweepBlobs } from './state/sweep-blobs.ts';
import { deleteOldCiStatistics } from './statistics/delete-ci-statistics.ts';
import { sumProjectDays } from './statistics/sum-project-days.ts';
import { deleteOldApprovals } from './updates/delete-approvals.ts';
import { endExpiredUpdates } from './updates/expire-leases.ts';
import { deleteOldDeliveries } from './webhooks/delete-deliveries.ts';

/** The page about queues shows ended jobs for this long. */
const admissionLifeSeconds = 3600;
/** Longer than any caller waits for a job. */
const jobResultLifeSeconds = 24 * 3600;

/** Longer than any counter takes to drain to zero. */
const rateCounterLifeSeconds = 600;

/** Blobs that may be uploaded in parts. Backups, bundles and other programs may use the same bucket. */
const uploadPrefixes = ['checkpoints/', 'audit/'];

const exchangesAtOnce = 5_000;

export function listBackgroundTasks(context: AppContext, runs: BackgroundTaskRepository): BackgroundTask[] {
  const { blobs, config, db } = context;
  const admissions = createJobAdmissionRepository(db);
  const jobResults = createOutcomeRepository(db);
  const failedLookups = createRateCounterRepository(db, 'failedLookups');
  const rateCounters = createRateCounterRepository(db, 'requests');
  const exchanges = createExchangeRepository(db);
  const queue = createUpdateQueueRepository(db);
  const bundle = bundleOf(config);
  const { format, receiverUrl } = config.audit;
  const receiver =
    receiverUrl === null
      ? null
      : {
          url: receiverUrl,
          token: config.secrets.auditToken,
          format,
          outgoing: receiverCalls(receiverUrl, config.outgoingAllow),
        };
  return [
    watchClock(runs, context.logger),
    { name: 'expire-leases', run: (signal) => endExpiredUpdates(context, signal) },
    { name: 'clip-waits', run: (signal) => clipWaits(context, signal) },
    { name: 'compact-journals', run: (signal) => compactEndedUpdates(context, signal) },
    { name: 'sweep-journals', deletesByAge: true, run: (signal) => deleteKeptJournals(context, signal) },
    { name: 'archive-events', run: (signal) => archiveEvents(context, signal) },
    { name: 'purge-stacks', deletesByAge: true, run: createStackDeletion(context) },
    { name: 'retention', deletesByAge: true, everySeconds: 3600, run: (signal) => sweepRetention(context, signal) },
    { name: 'sweep-blobs', deletesByAge: true, run: (signal) => sweepBlobs(context, signal) },
    ...(context.mirror ? secondStoreTasks(context, context.mirror) : []),
    {
      name: 'sweep-uploads',
      // A copy of the database may keep less, and abort uploads of the servers whose bucket it is.
      deletesByAge: true,
      run: () => blobs.sweepUnfinished(config.blobGraceSeconds * 1000, uploadPrefixes),
    },
    { name: 'sweep-admissions', deletesByAge: true, run: () => admissions.deleteExpired(admissionLifeSeconds) },
    { name: 'sweep-job-results', deletesByAge: true, run: () => jobResults.deleteOlderThan(jobResultLifeSeconds) },
    { name: 'sweep-failed-lookups', run: () => failedLookups.deleteOlderThan(rateCounterLifeSeconds) },
    { name: 'sweep-rate-counters', run: () => rateCounters.deleteOlderThan(rateCounterLifeSeconds) },
    {
      name: 'sweep-exchanges',
      deletesByAge: true,
      everySeconds: 60,
      run: () => exchanges.deleteExpired(exchangesAtOnce),
    },
    {
      name: 'sweep-tokens',
      deletesByAge: true,
      everySeconds: 3600,
      run: (signal) => deleteEndedTokens(context, signal),
    },
    {
      name: 'sweep-approvals',
      deletesByAge: true,
      everySeconds: 3600,
      run: (signal) => deleteOldApprovals(context, signal),
    },
    // For queues of stacks in which no call waits any more.
    { name: 'sweep-lock-queue', everySeconds: 60, run: () => queue.removeGone() },
    { name: 'sweep-projects', everySeconds: 3600, run: (signal) => deleteEmptyProjects(context, signal) },
    {
      name: 'sweep-policy-packs',
      deletesByAge: true,
      everySeconds: 3600,
      run: (signal) => deleteAbandonedPacks(context, signal),
    },
    { name: 'sweep-sessions', deletesByAge: true, everySeconds: 600, run: () => deleteEndedSignIns(context) },
    { name: 'evaluate-drift', run: (signal) => evaluateDrift(context, signal) },
    {
      name: 'sweep-webhook-log',
      deletesByAge: true,
      everySeconds: 600,
      run: (signal) => deleteOldDeliveries(context, signal),
    },
    { name: 'sum-project-days', run: (signal) => sumProjectDays(context, signal) },
    {
      name: 'sweep-ci-statistics',
      deletesByAge: true,
      everySeconds: 3600,
      run: (signal) => deleteOldCiStatistics(context, signal),
    },
    { name: 'chain-audit', everySeconds: 30, run: (signal) => chainAudit(context, signal) },
    { name: 'store-audit-heads', everySeconds: 300, run: (signal) => storeAuditHeads(context, signal) },
    ...(config.audit.isExported
      ? [{ name: 'export-audit', everySeconds: 30, run: (signal: AbortSignal) => exportAudit(context, signal) }]
      : []),
    ...(receiver
      ? [{ name: 'send-audit', everySeconds: 15, run: (signal: AbortSignal) => sendAudit(context, receiver, signal) }]
      : []),
    { name: 'add-audit-partitions', everySeconds: 6 * 3600, run: () => addAuditPartitions(context) },
    {
      name: 'drop-old-audit',
      deletesByAge: true,
      everySeconds: 6 * 3600,
      run: (signal) => dropOldAudit(context, signal),
    },
    { name: 'measure-storage', everySeconds: 60, run: (signal) => measureStorage(context, signal) },
    ...(config.encoding.bytesPerSecond > 0 ? [encodeInSlices(context)] : []),
    ...(config.backup.to === null
      ? []
      : [
          backUpOnSchedule(context, config.backup.to, runs),
          verifyNewestBackup(context, config.backup.to, runs, { program: process.argv[1] as string }),
        ]),
    ...(bundle === null ? [] : [keepBundle(context, bundle)]),
    ...(config.reconcile.everySeconds > 0 ? [reconcileInSlices(context, runs)] : []),
  ];
}

/** Each task runs on its own schedule, in one process at a time. */
export function startBackgroundTasks(context: AppContext): void {
  const { db, lifecycle } = context;
  const runs = createBackgroundTaskRepository(db);
  const tasks = listBackgroundTasks(context, runs);
  const names = tasks.map(({ name }) => name);
  // Otherwise, the first increment would begin a series at 1, which is no increase.
  for (const name of names) context.metrics.tasksPostponed.labels(name).inc(0);
  context.metrics.gaugeByQuery(
    'holdfast_task_failing',
    'Whether the last run of a background task in any process failed: 1 or 0.',
    'name',
    async () => {
      const failed = new Set((await runs.list()).filter(({ failedAt }) => failedAt !== null).map(({ name }) => name));
      return Object.fromEntries(names.map((name) => [name, failed.has(name) ? 1 : 0]));
    },
  );
  const holder = randomUUID();
  // Spread over the interval: at the same time, their statements would delay calls.
  const delayMs = (index: number): number => (context.config.sweepSeconds * 1000 * index) / tasks.length;
  const stop = tasks.map((task, index) => startBackgroundTask(context, runs, holder, task, delayMs(index)));
  lifecycle.onClose('work', 'background tasks', async () => {
    await Promise.all(stop.map((each) => each()));
  });
}
