import { Value } from 'typebox/value';
import type { JobAdmission, JobAdmissionRepository } from '../../shared/jobs/job-admission-repository.ts';
import { JobHead } from '../../shared/jobs/job-list.ts';
import { JobData } from '../../shared/jobs/queues.ts';
import { LimitedWarning } from '../../shared/platform/logger/limited-warning.ts';
import type { Logger } from '../../shared/platform/logger/logger.ts';
import { isUuid } from '../../shared/platform/schema/uuid.ts';
import type { Metrics } from '../../shared/platform/telemetry/metrics.ts';

/**
 * No API admitted the job, its admission has expired, it has already ended, its record differs from its admission, or its body is not the
 * stored one.
 */
export type DistrustReason = 'unknown' | 'expired' | 'replayed' | 'altered' | 'body';

/** As stored in Redis. */
export interface QueuedRecord {
  readonly id?: string | undefined;
  readonly name: string;
  readonly data: unknown;
  /** How often a worker took the job, including this time. */
  readonly attemptsStarted?: number;
}

const distrustText = 'rejected a job or body from Redis that no API process wrote';
/** Occurs without tampering: no worker took the job in time, or Redis lost it and restored it after a failover. */
const expiredText = 'rejected a job that came too late: its call has been given up or repeated';

const shownCharacters = 64;

/** The job must not run, now or later. */
export class NotAdmittedError extends Error {
  override readonly name = 'NotAdmittedError';
  constructor(reason: DistrustReason) {
    super(`not admitted (${reason}); see the worker's log`);
  }
}

/** Trusts only the job id from Redis, which must refer to a row written by an API. */
export class JobVerifier {
  readonly #admissions: JobAdmissionRepository;
  readonly #metrics: Metrics;
  readonly #warning: LimitedWarning;

  constructor({
    admissions,
    logger,
    metrics,
  }: {
    readonly admissions: JobAdmissionRepository;
    readonly logger: Logger;
    readonly metrics: Metrics;
  }) {
    this.#admissions = admissions;
    this.#metrics = metrics;
    this.#warning = new LimitedWarning(logger);
  }

  /** Returns also the outcome of a job that has ended. Throws NotAdmittedError and database errors. */
  async find(queued: QueuedRecord): Promise<JobAdmission> {
    const id = idOf(queued);
    const admission = id === null ? null : await this.#admissions.find(id);
    const reason = admission === null ? 'unknown' : admission.outcome ? null : admission.expired ? 'expired' : null;
    if (reason !== null || admission === null) {
      this.distrust(reason ?? 'unknown', queued.id);
      throw new NotAdmittedError(reason ?? 'unknown');
    }
    if (admission.outcome) {
      // A worker may have died after it stored the outcome.
      if ((queued.attemptsStarted ?? 1) <= 1) this.distrust('replayed', queued.id);
    } else if (!matches(queued, admission.job)) this.distrust('altered', queued.id);
    return admission;
  }

  /** Ends the admission of a job that failed permanently. Returns the job, or null if there was none. */
  async revoke(queued: QueuedRecord): Promise<unknown> {
    const id = idOf(queued);
    return id === null ? null : this.#admissions.revoke(id);
  }

  distrust(reason: DistrustReason, jobId: string | undefined): void {
    this.#metrics.queueRejected.labels(reason).inc();
    const fields = { reason, jobId: shown(jobId) };
    this.#warning.warn(reason, fields, reason === 'expired' ? expiredText : distrustText);
  }
}

/** Returns null if the channel is not one of ours. */
export function replyChannelOf({ data }: QueuedRecord): string | null {
  return Value.Check(JobData, data) ? data.replyTo : null;
}

/** The text is not trusted and goes into a log line. */
export function shown(text: unknown): string {
  return String(text).slice(0, shownCharacters);
}

function idOf({ id }: QueuedRecord): string | null {
  return id !== undefined && isUuid(id) ? id : null;
}

function matches(queued: QueuedRecord, job: unknown): boolean {
  return Value.Check(JobHead, job) && queued.name === job.name && replyChannelOf(queued) !== null;
}
