import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { withTimeout } from '../timeout/with-timeout.ts';

/** So that the other figures do not wait for a database that is away. */
const queryLimitMs = 1_000;
const noAnswer = (): Error => new Error(`No answer within ${queryLimitMs} ms`);

/** The process's metrics; labels have few values only. */
export type Metrics = ReturnType<typeof createMetrics>;

/** Makes a registry of its own, so that two roles, or two tests, can live in one process. */
export function createMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  return {
    registry,
    requestSeconds: new Histogram({
      name: 'holdfast_http_request_seconds',
      help: 'Time from the first byte of a request to the end of its answer.',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
      registers,
    }),
    connectionsRefused: new Counter({
      name: 'holdfast_connections_refused_total',
      help: 'Connections of clients refused, by the limit that they met: total or address.',
      labelNames: ['limit'],
      registers,
    }),
    credentialsRefused: new Counter({
      name: 'holdfast_credentials_refused_total',
      help: 'API tokens and leases refused: malformed (form or checksum), remembered (refused just before), unknown, or too many to look up.',
      labelNames: ['credential', 'reason'],
      registers,
    }),
    credentialLookups: new Counter({
      name: 'holdfast_credential_lookups_total',
      help: 'Statements that looked up API tokens and leases: for a single one, or for a batch from sources with many wrong ones.',
      labelNames: ['credential', 'way'],
      registers,
    }),
    updatesStarted: new Counter({
      name: 'holdfast_updates_started_total',
      help: 'Updates started.',
      labelNames: ['kind'],
      registers,
    }),
    updatesEnded: new Counter({
      name: 'holdfast_updates_ended_total',
      help: 'Updates ended, by status; expired leases count as cancelled.',
      labelNames: ['kind', 'status'],
      registers,
    }),
    commitSeconds: new Histogram({
      name: 'holdfast_commit_seconds',
      help: 'Time to commit a write of state.',
      labelNames: ['kind'],
      buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
      registers,
    }),
    jobSeconds: new Histogram({
      name: 'holdfast_job_seconds',
      help: 'Time that a worker spent on one attempt at a job.',
      labelNames: ['job'],
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120],
      registers,
    }),
    jobsEnded: new Counter({
      name: 'holdfast_jobs_ended_total',
      help: 'Jobs ended on this worker: committed, rejected, or failed for good.',
      labelNames: ['job', 'outcome'],
      registers,
    }),
    jobFaults: new Counter({
      name: 'holdfast_job_faults_total',
      help: 'Attempts at a job that ended in a fault; most are tried again.',
      labelNames: ['job'],
      registers,
    }),
    queueDistrusted: new Counter({
      name: 'holdfast_queue_distrusted_total',
      help: 'What Redis gave a worker that no API had put there so, by reason; nothing was done for it.',
      labelNames: ['reason'],
      registers,
    }),
    blobSeconds: new Histogram({
      name: 'holdfast_blob_seconds',
      help: 'Time of one operation on the blob store; of a put until its body was stored, of an open until the first byte.',
      labelNames: ['op'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
      registers,
    }),
    blobFaults: new Counter({
      name: 'holdfast_blob_faults_total',
      help: 'Operations that the blob store did not do, by its fault; `read` is a blob that broke off.',
      labelNames: ['op', 'fault'],
      registers,
    }),
    commitBytes: new Counter({
      name: 'holdfast_commit_body_bytes_total',
      help: 'Bytes of write bodies as received.',
      labelNames: ['kind'],
      registers,
    }),
    leasesExpired: new Counter({
      name: 'holdfast_leases_expired_total',
      help: 'Updates ended because their lease ran out.',
      registers,
    }),
    leasesLost: new Counter({
      name: 'holdfast_leases_lost_total',
      help: 'Updates cancelled because what their lease rests on is gone, or because they ran for too long, by reason.',
      labelNames: ['reason'],
      registers,
    }),
    stacksDeleting: new Gauge({
      name: 'holdfast_stacks_deleting',
      help: 'Deleted stacks that have rows left, as the last sweep of this process found; 0 where no sweep runs.',
      registers,
    }),
    stackRowsDeleted: new Counter({
      name: 'holdfast_stack_rows_deleted_total',
      help: 'Rows of deleted stacks that were deleted, by table.',
      labelNames: ['table'],
      registers,
    }),
    documentsChecked: new Counter({
      name: 'holdfast_documents_checked_total',
      help: 'Stored documents read back by the scrub, by what it found.',
      labelNames: ['outcome'],
      registers,
    }),
    blobsSwept: new Counter({ name: 'holdfast_blobs_swept_total', help: 'Orphaned blobs deleted.', registers }),
    blobsAdopted: new Counter({
      name: 'holdfast_blobs_adopted_total',
      help: 'Objects without a row that the reconciling job has left to the sweep.',
      registers,
    }),
    quotaRefusals: new Counter({
      name: 'holdfast_quota_refusals_total',
      help: 'Calls refused because their organization has reached a quota.',
      labelNames: ['quota'],
      registers,
    }),
    maintenanceRuns: new Counter({
      name: 'holdfast_maintenance_runs_total',
      help: 'Runs of a sweep or turns of the reconciling job in this process: done or failed.',
      labelNames: ['name', 'outcome'],
      registers,
    }),
    /** A gauge with one label, read when the metrics are asked for. */
    gaugeBy: (name: string, help: string, label: string, read: () => Readonly<Record<string, number>>) =>
      new Gauge({
        name,
        help,
        labelNames: [label],
        registers,
        collect() {
          for (const [value, figure] of Object.entries(read())) this.set({ [label]: value }, figure);
        },
      }),
    /** A gauge with one label that asks the database; it keeps its figures while the database does not answer at once. */
    gaugeByQuery: (name: string, help: string, label: string, read: () => Promise<Readonly<Record<string, number>>>) =>
      new Gauge({
        name,
        help,
        labelNames: [label],
        registers,
        async collect() {
          const figures = await withTimeout(read(), queryLimitMs, noAnswer).catch(() => ({}));
          for (const [value, figure] of Object.entries(figures)) this.set({ [label]: value }, figure);
        },
      }),
    /** A gauge with several labels that asks the database; as above, but what is not answered any more goes. */
    gaugeByLabels: <L extends string>(
      name: string,
      help: string,
      labelNames: readonly L[],
      read: () => Promise<readonly { readonly labels: Readonly<Record<L, string>>; readonly figure: number }[]>,
    ) =>
      new Gauge({
        name,
        help,
        labelNames: [...labelNames],
        registers,
        async collect() {
          const figures = await withTimeout(read(), queryLimitMs, noAnswer).catch(() => null);
          if (!figures) return;
          this.reset();
          for (const { labels, figure } of figures) this.set(labels, figure);
        },
      }),
    /** A gauge read when the metrics are asked for. */
    gauge: (name: string, help: string, read: () => number) =>
      new Gauge({
        name,
        help,
        registers,
        collect() {
          this.set(read());
        },
      }),
  };
}
