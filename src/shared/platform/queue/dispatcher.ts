import type { Job } from './jobs.ts';

/** Hands jobs to workers, wherever these run. */
export interface JobDispatcher {
  /**
   * Runs the job and resolves once its effect is committed. Rejects with the typed refusal of the job, or with
   * UnavailableError when its fate is not known within the wait: then a repeat of the call is safe.
   */
  run(job: Job): Promise<void>;
  /** Sees that the job runs at some time; resolves once it is accepted. */
  enqueue(job: Job): Promise<void>;
  state(): { waiting: number; active: number; oldestWaitingMs: number };
  /** Takes no more jobs and waits for those under way. */
  close(): Promise<void>;
}
