import { Value } from 'typebox/value';
import type { AdmissionRepository, JobAdmission } from '../shared/jobs/admission-repository.ts';
import { JobHead } from '../shared/jobs/definitions.ts';
import { JobData } from '../shared/jobs/queues.ts';
import { LimitedWarning } from '../shared/platform/logger/limited-warning.ts';
import type { Logger } from '../shared/platform/logger/logger.ts';
import type { Metrics } from '../shared/platform/telemetry/metrics.ts';

/**
 * What is wrong with what Redis gave: a job that no API has admitted, one whose time is over, one that has ended before, one whose record
 * says another thing than its admission, a body that is not the one that was handed over.
 */
export type DistrustReason = 'unknown' | 'expired' | 'replayed' | 'altered' | 'body';

/** A job as Redis has it. */
export interface QueuedRecord {
  readonly id?: string | undefined;
  readonly name: string;
  readonly data: unknown;
}

const idPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** Of what strangers write, no more than this gets into a line of the log. */
const shownCharacters = 64;

/** Nothing may be done for the job, now or later. */
export class NotAdmittedError extends Error {
  override readonly name = 'NotAdmittedError';
  constructor(reason: DistrustReason) {
    super(`not admitted (${reason}); see the worker's log`);
  }
}

/** Finds out what queued jobs may do. Of Redis only the id is believed, and that names a row which an API has written. */
export class AdmittedJobs {
  readonly #admissions: AdmissionRepository;
  readonly #metrics: Metrics;
  readonly #warning: LimitedWarning;

  constructor({
    admissions,
    logger,
    metrics,
  }: {
    readonly admissions: AdmissionRepository;
    readonly logger: Logger;
    readonly metrics: Metrics;
  }) {
    this.#admissions = admissions;
    this.#metrics = metrics;
    this.#warning = new LimitedWarning(logger);
  }

  /** What the job may do, or what it came to when it has ended already. Throws NotAdmittedError, and the fault of Postgres. */
  async find(queued: QueuedRecord): Promise<JobAdmission> {
    const id = idOf(queued);
    const admission = id === null ? null : await this.#admissions.find(id);
    const refusal = admission === null ? 'unknown' : admission.outcome ? null : admission.expired ? 'expired' : null;
    if (refusal !== null || admission === null) {
      this.distrust(refusal ?? 'unknown', queued.id);
      throw new NotAdmittedError(refusal ?? 'unknown');
    }
    if (admission.outcome) this.distrust('replayed', queued.id);
    else if (!saysTheSame(queued, admission.job)) this.distrust('altered', queued.id);
    return admission;
  }

  /** Ends the admission of a job that is given up. What it was; null when there was none. Throws the fault of Postgres. */
  async revoke(queued: QueuedRecord): Promise<unknown> {
    const id = idOf(queued);
    return id === null ? null : this.#admissions.revoke(id);
  }

  distrust(reason: DistrustReason, jobId: string | undefined): void {
    this.#metrics.queueDistrusted.labels(reason).inc();
    const fields = { reason, jobId: shown(jobId) };
    this.#warning.warn(reason, fields, 'rejected a job or body from Redis that no API has put there');
  }
}

/** The channel on which the job's end is told, if it can be one of ours. */
export function replyChannelOf({ data }: QueuedRecord): string | null {
  return Value.Check(JobData, data) ? data.replyTo : null;
}

/** What strangers may have written, for a line of the log. */
export function shown(text: unknown): string {
  return String(text).slice(0, shownCharacters);
}

function idOf({ id }: QueuedRecord): string | null {
  return id !== undefined && idPattern.test(id) ? id : null;
}

function saysTheSame(queued: QueuedRecord, job: unknown): boolean {
  return Value.Check(JobHead, job) && queued.name === job.name && replyChannelOf(queued) !== null;
}
