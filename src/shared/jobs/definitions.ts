import { type Static, Type } from 'typebox';
import { appendEvents } from '../events/event-writer.ts';
import type { BudgetName } from '../platform/payloads/in-flight-rules.ts';
import { StackRef } from '../stacks/names.ts';
import type { WriteBody } from '../state/checkpoints/body-buffer.ts';
import { applyCheckpoint } from '../state/checkpoints/checkpoint-writer.ts';
import { changeTarget, importDeployment } from '../state/deployment-importer.ts';
import { appendJournal } from '../state/journal/journal-writer.ts';
import { defineTask, type JobServices, type QueuedBody, queuedWrite } from './job-definition.ts';

/** Renames a stack, including all references in its state. */
export const renameStack = defineTask({
  name: 'rename-stack',
  schemas: [1],
  payload: { ...changeTarget, from: StackRef, to: StackRef },
  run: ({ renamer }, job, beforeCommit) => renamer.rename(job, beforeCommit),
});

/** Compacts the journal of an update into a checkpoint. */
export const compactJournal = defineTask({
  name: 'compact-journal',
  schemas: [1],
  payload: { updateId: Type.String() },
  run: ({ compactor, waitsForClaims }, { updateId }) => compactor.compact(updateId, waitsForClaims),
});

/** Takes a snapshot of the replay of a journal, or only compacts it incrementally in the worker's memory. */
export const snapshotJournal = defineTask({
  name: 'snapshot-journal',
  schemas: [1],
  payload: {
    updateId: Type.String(),
    /** Whether it is only compacted in the worker's memory. */
    incremental: Type.Optional(Type.Boolean()),
  },
  run: async ({ compactor, incrementalCompaction }, { updateId, incremental }) => {
    if (incremental === true) incrementalCompaction.request(updateId);
    else await compactor.takeSnapshot(updateId);
  },
});

/** A queued job: ids only. Bodies are in the payload store under `payloadKey`. */
export const Job = Type.Union([
  queuedWrite(applyCheckpoint),
  queuedWrite(appendJournal),
  queuedWrite(appendEvents),
  queuedWrite(importDeployment),
  renameStack.record,
  compactJournal.record,
  snapshotJournal.record,
]);
export type Job = Static<typeof Job>;
export type JobName = Job['name'];

/** The names of all jobs. */
export const jobNames: readonly JobName[] = [
  ...[applyCheckpoint, appendJournal, appendEvents, importDeployment],
  ...[renameStack, compactJournal, snapshotJournal],
].map(({ name }) => name);

/** The jobs that are queued with a body. */
export type WriteName = Extract<Job, QueuedBody>['name'];
/** A job without the fields of its body. */
export type BodilessJob<N extends WriteName> = Omit<Extract<Job, { name: N }>, keyof QueuedBody>;

/**
 * A job with a body: a write, as routes submit it. `I` is what a route knows before the body has arrived. Without `admit` it is the payload
 * of the job.
 */
export interface WriteDefinition<N extends WriteName, I> {
  readonly name: N;
  readonly schemas: readonly number[];
  /** Label in the metrics. */
  readonly label: (input: I) => string;
  /** `imports`: for calls that the CLI does not repeat; they wait for capacity instead of being refused. */
  readonly budget: BudgetName;
  /**
   * Skip the write if the client has disconnected by the time its body is complete: it may have repeated the call elsewhere,
   * and this call has no number to detect that.
   */
  readonly onlyWhileAwaited?: (input: I) => boolean;
  /** Builds the payload of the job. Called when the body is complete. */
  readonly admit?: (services: JobServices, input: I) => Promise<Omit<BodilessJob<N>, 'name' | 'schema' | 'requestId'>>;
  readonly run: (services: JobServices, job: BodilessJob<N>, body: WriteBody) => Promise<void>;
  /**
   * For writes that must not be committed after their client got an error. Receives the error of the attempt to commit.
   * Resolves if the write is committed nevertheless; otherwise throws the error for the client and prevents the commit.
   */
  readonly resolveFailure?: (services: JobServices, job: BodilessJob<N>, error: unknown) => Promise<void>;
}

/** Fields that jobs of all releases have. */
export const JobHead = Type.Object({ name: Type.String(), schema: Type.Integer() });
