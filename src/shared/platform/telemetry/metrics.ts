import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

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
    blobsSwept: new Counter({ name: 'holdfast_blobs_swept_total', help: 'Orphaned blobs deleted.', registers }),
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
