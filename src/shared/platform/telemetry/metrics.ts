import { Counter, collectDefaultMetrics, Gauge, Histogram, type PrometheusContentType, Registry } from 'prom-client';
import { isTracing, type Span } from '../tracing/tracing.ts';
import { gaugesOf } from './gauges.ts';

/** Labels have few values. */
export type Metrics = ReturnType<typeof createMetrics>;

/** For histograms with exemplars. */
export function observeTraced<L extends string>(
  histogram: Histogram<L>,
  labels: Partial<Record<L, string>>,
  { seconds, span }: { readonly seconds: number; readonly span: Span | null },
): void {
  if (span === null) {
    // With or without exemplars.
    histogram.labels(labels).observe(seconds);
    return;
  }
  const { spanId, traceId } = span.spanContext();
  // The types of the package permit only the metric's labels here.
  const exemplarLabels: object = { trace_id: traceId, span_id: spanId };
  histogram.observe({ labels, value: seconds, exemplarLabels });
}

/** Uses a separate registry, so that two roles or two tests can share a process. */
export function createMetrics() {
  // Only the OpenMetrics format has exemplars.
  const enableExemplars = isTracing();
  const registry = new Registry();
  if (enableExemplars) registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE as PrometheusContentType);
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  return {
    registry,
    ...gaugesOf(registers),
    buildInfo: new Gauge({
      name: 'holdfast_build_info',
      help: 'Always 1, with the role and the version of the process.',
      labelNames: ['role', 'version'],
      registers,
    }),
    requestSeconds: new Histogram({
      name: 'holdfast_http_request_seconds',
      help: 'Time from the first byte of a request to the end of its response.',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
      enableExemplars,
      registers,
    }),
    procedureSeconds: new Histogram({
      name: 'holdfast_procedure_seconds',
      help: 'Time of one call of a web UI procedure, by result: ok, or the code of the error.',
      labelNames: ['procedure', 'code'],
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
      registers,
    }),
    connectionsRejected: new Counter({
      name: 'holdfast_connections_rejected_total',
      help: 'Client connections rejected, by the limit they hit: total or address.',
      labelNames: ['limit'],
      registers,
    }),
    credentialsRejected: new Counter({
      name: 'holdfast_credentials_rejected_total',
      help: 'API tokens, leases and id tokens rejected: malformed (format or checksum), remembered (rejected moments before), unknown, or too many to look up.',
      labelNames: ['credential', 'reason'],
      registers,
    }),
    credentialLookups: new Counter({
      name: 'holdfast_credential_lookups_total',
      help: 'SQL statements that looked up API tokens and leases: a single one, or a batch from sources that sent many wrong ones.',
      labelNames: ['credential', 'mode'],
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
      help: 'Updates ended, by status. Expired leases count as cancelled.',
      labelNames: ['kind', 'status'],
      registers,
    }),
    lockWaitSeconds: new Histogram({
      name: 'holdfast_update_queue_wait_seconds',
      help: 'Time that the creation of an update waited for its stack, by outcome: turn (it got the stack) or over (refused).',
      labelNames: ['end'],
      buckets: [0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600],
      registers,
    }),
    lockHolds: new Counter({
      name: 'holdfast_update_queue_waits_total',
      help: 'Calls that were asked to call again while they waited for a stack.',
      registers,
    }),
    updatesRefused: new Counter({
      name: 'holdfast_updates_refused_total',
      help: 'Updates that were not created: busy (another update holds the stack, also after a wait), superseded, frozen, or limit.',
      labelNames: ['reason'],
      registers,
    }),
    outputChecksFailed: new Counter({
      name: 'holdfast_output_checks_failed_total',
      help: 'Updates and previews whose removed outputs are unknown because their events could not be read. Rules of kind consumers do not accept such a preview.',
      registers,
    }),
    commitSeconds: new Histogram({
      name: 'holdfast_commit_seconds',
      help: 'Time to commit a state write.',
      labelNames: ['kind'],
      buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
      registers,
    }),
    jobSeconds: new Histogram({
      name: 'holdfast_job_seconds',
      help: 'Time a worker spent on one attempt at a job.',
      labelNames: ['name'],
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120],
      enableExemplars,
      registers,
    }),
    jobsEnded: new Counter({
      name: 'holdfast_jobs_ended_total',
      help: 'Jobs finished by this worker: committed, rejected, or failed permanently.',
      labelNames: ['name', 'outcome'],
      registers,
    }),
    jobErrors: new Counter({
      name: 'holdfast_job_errors_total',
      help: 'Job attempts that failed with an error. Most are retried.',
      labelNames: ['name'],
      registers,
    }),
    queueRejected: new Counter({
      name: 'holdfast_queue_rejected_total',
      help: 'Jobs and bodies from Redis that a worker rejected because they do not match what the API stored in Postgres, by reason.',
      labelNames: ['reason'],
      registers,
    }),
    blobSeconds: new Histogram({
      name: 'holdfast_blob_seconds',
      help: 'Time of one blob store operation: a put until its body is stored, an open until the first byte.',
      labelNames: ['op'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
      registers,
    }),
    blobErrors: new Counter({
      name: 'holdfast_blob_errors_total',
      help: 'Failed blob store operations, by error. `read` is a blob whose download was cut off.',
      labelNames: ['op', 'error'],
      registers,
    }),
    commitBytes: new Counter({
      name: 'holdfast_commit_body_bytes_total',
      help: 'Bytes of request bodies of state writes, as received.',
      labelNames: ['kind'],
      registers,
    }),
    leasesExpired: new Counter({
      name: 'holdfast_leases_expired_total',
      help: 'Updates ended because their lease expired.',
      registers,
    }),
    databaseChanges: new Counter({
      name: 'holdfast_database_changes_total',
      help: 'Restores and failovers of the database that this process was the first to note. Each ended all active updates.',
      registers,
    }),
    leasesLost: new Counter({
      name: 'holdfast_leases_revoked_total',
      help: 'Updates cancelled because their token, user or membership was removed, or because they ran for too long, or because the database was restored, by reason.',
      labelNames: ['reason'],
      registers,
    }),
    batchesRefused: new Counter({
      name: 'holdfast_begins_refused_total',
      help: 'Batches of journal entries in which an update was not allowed to begin operations, by reason.',
      labelNames: ['reason'],
      registers,
    }),
    webhookAttempts: new Counter({
      name: 'holdfast_webhook_attempts_total',
      help: 'Attempts of this process to deliver events to webhooks, by outcome. `error`: the attempt could not be made or recorded.',
      labelNames: ['outcome'],
      registers,
    }),
    stacksDeleting: new Gauge({
      name: 'holdfast_stacks_deleting',
      help: 'Deleted stacks that can no longer be restored and still have rows, as of the last run of the task in this process. 0 where it does not run.',
      registers,
    }),
    stackRowsDeleted: new Counter({
      name: 'holdfast_stack_rows_deleted_total',
      help: 'Rows of deleted stacks removed, by table.',
      labelNames: ['table'],
      registers,
    }),
    retentionDeleted: new Counter({
      name: 'holdfast_retention_deleted_total',
      help: 'What rules about retention have deleted: states of versions, events of updates, previews.',
      labelNames: ['kind'],
      registers,
    }),
    documentsChecked: new Counter({
      name: 'holdfast_documents_checked_total',
      help: 'Stored documents read back by the scrub, by result.',
      labelNames: ['outcome'],
      registers,
    }),
    eventsArchived: new Counter({
      name: 'holdfast_events_archived_total',
      help: 'Engine events moved from rows into segments.',
      registers,
    }),
    eventBytesArchived: new Counter({
      name: 'holdfast_event_bytes_archived_total',
      help: 'Bytes of engine events moved from rows into segments: raw, and as stored.',
      labelNames: ['form'],
      registers,
    }),
    versionsIndexed: new Counter({
      name: 'holdfast_states_indexed_total',
      help: 'States whose resources were indexed: versions, and heads of running updates.',
      registers,
    }),
    versionsEncoded: new Counter({
      name: 'holdfast_versions_encoded_total',
      help: 'Older versions encoded against others: encoded, shared (an earlier version has the same bytes), or failed.',
      labelNames: ['outcome'],
      registers,
    }),
    versionBytesSaved: new Counter({
      name: 'holdfast_version_bytes_saved_total',
      help: 'Stored bytes that encoding older versions has saved.',
      registers,
    }),
    blobsSwept: new Counter({ name: 'holdfast_blobs_swept_total', help: 'Orphaned blobs deleted.', registers }),
    blobSweepsRefused: new Counter({
      name: 'holdfast_blob_sweeps_refused_total',
      help: 'Sweeps that deleted nothing because another copy of the database owns the blob store.',
      registers,
    }),
    blobsAdopted: new Counter({
      name: 'holdfast_blobs_adopted_total',
      help: 'Objects without a database row that the reconcile task registered for the sweep of blobs.',
      registers,
    }),
    replicaReads: new Counter({
      name: 'holdfast_replica_reads_total',
      help: 'Reads that a replica may serve, by the server that served the first statement: replica or primary.',
      labelNames: ['server'],
      registers,
    }),
    replicaFallbacks: new Counter({
      name: 'holdfast_replica_fallbacks_total',
      help: 'Reads that continued at the primary after they had begun at the replica: behind, conflict (with its recovery), busy (no free connection), moved (another server answered), or failed.',
      labelNames: ['reason'],
      registers,
    }),
    quotaRejections: new Counter({
      name: 'holdfast_quota_rejections_total',
      help: 'Requests rejected because their organization has reached a quota.',
      labelNames: ['quota'],
      registers,
    }),
    requestsLimited: new Counter({
      name: 'holdfast_requests_limited_total',
      help: 'Requests above a limit per minute, by subject of the limit (token, user, address): delayed, rejected, or allowed because an update needs them.',
      labelNames: ['limit', 'outcome'],
      registers,
    }),
    taskRuns: new Counter({
      name: 'holdfast_task_runs_total',
      help: 'Runs of a background task in this process: done or failed.',
      labelNames: ['name', 'outcome'],
      registers,
    }),
    tasksPostponed: new Counter({
      name: 'holdfast_task_postponed_total',
      help: 'Items that a background task in this process could not handle and left for later, such as a state whose blob cannot be read.',
      labelNames: ['name'],
      registers,
    }),
  };
}
