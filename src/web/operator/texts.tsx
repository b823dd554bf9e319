import type { ReactNode } from 'react';
import { numberLocale } from '../platform/ui/locale.ts';

export const attentionTexts = {
  auditNotExported: 'The audit log is not exported',
  auditNotExportedHint: 'The blob store refuses it, or this database has not taken over.',
  auditNotForwarded: 'The audit log is not forwarded',
  auditNotForwardedHint: 'The server that receives it is slow or down.',
  backupOverdue: 'The scheduled backup is overdue by more than a day',
  backupOverdueHint: 'See why the last attempt failed.',
  blobStoreDown: 'The blob store does not answer',
  blobStoreDownHint: 'Large states cannot be read or written until it does.',
  blocked: (stacks: number) =>
    stacks === 1 ? '1 stack takes no changes' : `${stacks.toLocaleString(numberLocale)} stacks take no changes`,
  blockedHint: 'Journal entries cannot be replayed: run holdfast admin recompact, accept or restore.',
  count: (problems: number) =>
    problems === 1 ? '1 thing needs your attention' : `${problems} things need your attention`,
  damaged: (documents: number) =>
    documents === 1
      ? '1 stored state is damaged'
      : `${documents.toLocaleString(numberLocale)} stored states are damaged`,
  damagedHint: 'Run holdfast admin scrub.',
  databaseDown: 'Postgres does not answer',
  databaseDownHint: 'Nothing can be read or written until it does.',
  held: 'This database was restored and has not taken over',
  heldHint: 'Webhooks, audit events and backups wait until holdfast admin take-over.',
  jobsFailed: (failed: number, queue: string) =>
    `${failed.toLocaleString(numberLocale)} ${failed === 1 ? 'job' : 'jobs'} of the ${queue} writes failed`,
  jobsFailedHint: 'Retry or discard them.',
  noHeartbeat: (processes: number) =>
    `${processes} ${processes === 1 ? 'process sends' : 'processes send'} no heartbeat`,
  noHeartbeatHint: 'It was stopped on purpose, or it crashed: see the list below.',
  noWorker: (queue: string) => `No worker processes ${queue} writes`,
  noWorkerHint: 'Start a worker.',
  nothing: 'Nothing needs your attention',
  redisDown: 'Redis does not answer',
  redisDownHint: 'Large writes are refused until it does; nothing is lost.',
  taskFails: (task: string) => `The task "${task}" fails`,
  unchained: 'Audit events are not chained',
  unchainedHint: 'Events from a few minutes ago can still be changed without a trace.',
  unknown: 'Queues or tasks cannot be read at the moment',
} as const;

export const backupTexts = {
  asOf: 'As of',
  backup: 'Backup',
  backups: 'Backups',
  blobs: 'Blobs',
  createFailed: (at: ReactNode, error: string | null) => (
    <>
      Backup, {at}: {error}
    </>
  ),
  encrypted: 'Encrypted',
  last: 'Last backup',
  notMade: 'No worker makes backups',
  unattended: (at: ReactNode, setting: ReactNode) => (
    <>
      No worker has looked for due backups since {at}: none runs, or none has {setting}.
    </>
  ),
  lastFailed: 'the last attempt failed',
  lastVerified: 'Last verified',
  lead: (plan: { readonly location: string; readonly schedule: string; readonly keep: number }) =>
    `In ${plan.location}, by the schedule ${plan.schedule} (UTC). The newest ${plan.keep} are kept.`,
  missingBlobs: 'Missing blobs',
  never: 'never',
  next: 'Next backup',
  no: 'no',
  none: 'No scheduled backups',
  noneHint: (setting: ReactNode) => <>Set {setting}, and a worker makes one each day.</>,
  problems: 'Problems',
  shareBlobs: 'Backups share blobs, so together they need less space than the sizes add up to.',
  size: 'Size',
  sizeOfNewest: 'Size of the newest',
  verificationSkipped: (why: string) => `Not verified by workers: ${why}`,
  verified: 'Verified',
  verifyFailed: (at: ReactNode, error: string | null) => (
    <>
      Verification, {at}: {error}
    </>
  ),
  yes: 'yes',
} as const;

export const healthTexts = {
  answeredIn: (time: string) => `in ${time}`,
  api: 'API',
  blobStore: 'Blob store',
  connections: (open: number, most: number | undefined) => `${open} of ${most} connections`,
  cpu: 'CPU',
  database: 'Postgres',
  failed: (at: ReactNode, message: string) => (
    <>
      Failed {at}: {message}
    </>
  ),
  files: 'Files',
  inUse: (acquired: number, waiting: number) =>
    `${acquired} in use here${waiting === 0 ? '' : `, ${waiting} ${waiting === 1 ? 'caller waits' : 'callers wait'}`}`,
  lastSeen: 'Last seen',
  lead: 'The services, as reached by the process that serves this page, and all processes.',
  longestDelay: 'Longest event loop delay',
  memory: 'Memory',
  noHeartbeatFor: (time: ReactNode) => <>No heartbeat for {time}</>,
  noProcesses: 'No process has reported yet.',
  notResponding: 'Does not respond',
  process: 'Process',
  processes: 'Processes',
  processesLead: 'Each process sends a heartbeat every ten seconds. A stopped process is shown for an hour.',
  redis: 'Redis',
  redisNotUsed: 'Not used: jobs run in the process that creates them.',
  responds: 'Responds',
  s3: 'S3',
  server: 'Server',
  title: 'Health',
  up: 'Up',
  version: 'Version',
  versionOf: (version: string) => `Version ${version}`,
  worker: 'Worker',
} as const;

export const lockTexts = {
  age: 'Age',
  ciRun: 'CI run',
  duration: 'Duration',
  ended: 'Ended',
  ends: (at: ReactNode) => <>ends {at}</>,
  expired: 'Expired, ends soon',
  from: 'From',
  lead: 'Updates that hold a lock, in all organizations, the oldest first.',
  lease: 'Lease',
  locks: 'Locks',
  noUpdates: 'No update has ended recently.',
  none: 'No stack is locked',
  noneHint: 'No update is running: a good moment for maintenance.',
  owner: 'Owner',
  /** An update, and the user who started it. */
  ownedBy: (update: string, by: string | null) => (by === null ? update : `${update} by ${by}`),
  result: 'Result',
  slowUpdates: 'Slow updates',
  slowest: 'Slowest of the last 7 days',
  slowestLead: 'The longest update per stack and day.',
  stack: 'Stack',
  update: 'Update',
  waiting: 'Waiting',
} as const;

export const operatorTexts = { pages: 'Pages for operators' } as const;

export const queueTexts = {
  actions: 'Actions',
  added: 'Added',
  attempts: 'Attempts',
  discard: 'Discard',
  discardIt: 'Discard it',
  discardJob: (job: string) => `Discard ${job}`,
  discardLead:
    'Only this record is removed. The caller already got an error; cleanup jobs are scheduled again automatically.',
  discardTitle: (job: string) => `Discard ${job}?`,
  error: 'Error',
  failed: 'Failed',
  inRedis: (redis: { readonly time: string; readonly used: string; readonly limit: string | null }) =>
    `Redis answers in ${redis.time} and holds ${redis.used}${redis.limit === null ? '' : ` of ${redis.limit}`}.`,
  inServer:
    'This server runs its jobs itself: there are no queues in Redis, and the caller of a failed job gets an error.',
  job: 'Job',
  jobsOf: (queue: string) => `Jobs: ${queue}`,
  largeWrites: 'Large writes',
  lead: 'The jobs of the workers.',
  oldest: 'Oldest',
  queue: 'Queue',
  queues: 'Queues',
  redisDown: 'Redis does not answer. Large writes are refused until it does; nothing is lost.',
  retry: 'Retry',
  retryJob: (job: string) => `Retry ${job}`,
  retryLead: 'The job is queued again. Running it twice does no harm.',
  retryTitle: (job: string) => `Run ${job} again?`,
  runAgain: 'Run it again',
  running: 'Running',
  smallWrites: 'Small writes',
  state: 'State',
  waiting: 'Waiting',
  waitingForNext: 'Waiting for the next attempt',
  workers: 'Workers',
} as const;

export const serverAuditTexts = {
  events: 'Events',
  lead: 'Sign-ins, passwords, passkeys and personal tokens of all users, and other events outside of organizations.',
  login: 'Login',
  onWhat: 'Target',
  partOfName: 'Part of a name',
  title: 'Audit log',
  who: 'Who',
} as const;

export const storagePageTexts = {
  allOrganizations: 'All organizations, without policy packs',
  allVersions: 'all versions',
  change: 'Change in 30 days',
  database: 'Database',
  events: 'Events',
  journals: 'Journals',
  largestTables: 'Largest tables',
  lead: 'Storage use of organizations is measured several times a day, after compression, in Postgres and in the blob store.',
  logs: 'logs of updates',
  measured: 'Measured',
  notCompacted: 'not compacted or not deleted yet',
  notMeasured: 'Not measured yet',
  notMeasuredHint: 'A worker measures each organization within the next hour.',
  organization: 'Organization',
  organizations: 'Organizations',
  packs: 'Policy packs',
  rows: 'Rows',
  size: 'Size',
  stacks: 'Stacks',
  states: 'States',
  storage: 'Storage',
  table: 'Table',
  tablesLead: 'Postgres tables with their indexes. Row counts are estimates.',
  total: 'Total',
  withIndexes: 'with indexes',
} as const;

export const taskTexts = {
  applied: 'Applied',
  auditNotChained: 'Audit log, not chained',
  done: 'Done',
  duration: 'Duration',
  failed: 'Failed',
  lead: 'Background tasks. Each runs in one process at a time, and never delays an update.',
  logsToArchive: 'Logs to archive',
  migration: 'Migration',
  migrations: 'Migrations',
  migrationsLead: 'The newest of the database.',
  noMigrations: 'No migrations.',
  noRuns: 'No task has run yet.',
  none: 'none',
  notForwarded: 'not forwarded',
  result: 'Result',
  running: 'Running',
  runs: 'Task runs',
  started: 'Started',
  state: 'State',
  statesToIndex: 'States to index',
  task: 'Task',
  tasks: 'Tasks',
  unsent: (age: string) => `unsent ${age}`,
  versionsToEncode: 'Versions to re-encode',
  webhooksToDeliver: 'Webhooks to deliver',
} as const;
