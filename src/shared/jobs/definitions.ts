import { type Static, Type } from 'typebox';
import { AuditSource } from '../audit/audit-event.ts';
import { Nullable } from '../platform/schema/standard-schema.ts';
import { StackRef } from '../stacks/names.ts';
import { CheckpointEnvelope, CheckpointKind } from '../state/checkpoints/checkpoint-writer.ts';
import { Admission, type StackHead } from '../updates/admitted-changes.ts';
import { LeaseFence } from '../updates/lease.ts';
import { defineTask, defineWrite } from './job-definition.ts';

/** Saves a checkpoint of a running update, as sent by a CLI without journaling. */
export const applyCheckpoint = defineWrite({
  name: 'apply-checkpoint',
  schemas: [1],
  payload: {
    kind: CheckpointKind,
    /** Missing in jobs of the previous release; `cli` then. */
    envelope: Type.Optional(CheckpointEnvelope),
    fence: LeaseFence,
    /** Position in the order of arrival; full checkpoints only. */
    arrivalSequence: Type.Union([Type.Integer(), Type.Null()]),
  },
  label: ({ kind }) => kind,
  budget: 'writes',
  // A process that was frozen could give an old call a later position than its repeat.
  onlyWhileAwaited: ({ kind }) => kind === 'full',
  run: async ({ writer }, job, body) =>
    writer.write({
      ...job,
      envelope: job.envelope ?? 'cli',
      ...(await body.open({ parsed: job.kind === 'delta' })),
    }),
});

/** Adds a batch of entries to the journal of a running update. */
export const appendJournal = defineWrite({
  name: 'append-journal',
  schemas: [1],
  payload: { fence: LeaseFence },
  label: () => 'journal',
  budget: 'writes',
  run: async ({ journalWriter, requestIncremental, requestSnapshot }, { fence }, body) => {
    const { snapshotDue, incrementalDue } = await body.use((entries) => journalWriter.append(fence, entries));
    // Separate jobs: the entries stay committed if one fails, and the call does not wait for it.
    if (snapshotDue) await requestSnapshot(fence.updateId);
    else if (incrementalDue) await requestIncremental(fence.updateId);
  },
});

/** Records a batch of engine events of a running update. */
export const appendEvents = defineWrite({
  name: 'append-events',
  schemas: [1],
  payload: { fence: LeaseFence },
  label: () => 'events',
  budget: 'writes',
  run: ({ eventWriter }, { fence }, body) => body.use((events) => eventWriter.append(fence, events)),
});

const importTarget = {
  stackId: Type.String(),
  /** Chosen before the job is queued, so that a second run finds what the first one committed. */
  updateId: Type.String(),
  /** Null for a token that belongs to no user. */
  requestedBy: Nullable(Type.String()),
  /** For the audit log. Missing in jobs of the previous release. */
  source: Type.Optional(AuditSource),
};

/** An import before its body has arrived: the head that it may replace, without a deadline. */
export interface ImportInput {
  readonly stackId: string;
  readonly updateId: string;
  readonly requestedBy: string | null;
  readonly source: AuditSource;
  readonly head: StackHead;
}

/** Imports a deployment document as a new version of a stack. */
export const importDeployment = defineWrite({
  name: 'import-deployment',
  // Schema 2 added the admission: without it, an import that waited long would undo later changes. Schema 3 added the source: an
  // earlier release would commit without an event in the audit log.
  schemas: [2, 3],
  payload: { ...importTarget, admission: Admission },
  label: () => 'import',
  budget: 'imports',
  onlyWhileAwaited: () => true,
  admit: async ({ changes }, { head, ...target }: ImportInput) => ({ ...target, admission: await changes.admit(head) }),
  run: async ({ importer }, job, body) => importer.import({ ...job, ...(await body.open()) }),
  resolveFailure: ({ changes }, { updateId }, error) => changes.resolveFailure(updateId, error),
});

/** Renames a stack, including all references in its state. */
export const renameStack = defineTask({
  name: 'rename-stack',
  // Schema 2 added the source.
  schemas: [1, 2],
  payload: { ...importTarget, admission: Admission, from: StackRef, to: StackRef },
  run: ({ renamer }, job, beforeCommit) => renamer.rename(job, beforeCommit),
});

/** Compacts the journal of an update into a checkpoint. */
export const compactJournal = defineTask({
  name: 'fold-journal',
  schemas: [1],
  payload: { updateId: Type.String() },
  run: ({ compactor }, { updateId }) => compactor.compact(updateId),
});

/** Takes a snapshot of the replay of a journal, or only compacts it ahead in the worker's memory. */
export const snapshotJournal = defineTask({
  name: 'advance-fold',
  schemas: [1],
  payload: {
    updateId: Type.String(),
    /** Workers of the previous release take a snapshot in both cases, which has the same use. */
    ahead: Type.Optional(Type.Boolean()),
  },
  run: async ({ compactor, incrementalCompaction }, { updateId, ahead }) => {
    if (ahead === true) incrementalCompaction.request(updateId);
    else await compactor.takeSnapshot(updateId);
  },
});

/** A queued job: ids only. Bodies are in the payload store under `payloadKey`. */
export const Job = Type.Union([
  applyCheckpoint.record,
  appendJournal.record,
  appendEvents.record,
  importDeployment.record,
  renameStack.record,
  compactJournal.record,
  snapshotJournal.record,
]);
export type Job = Static<typeof Job>;
export type JobName = Job['name'];

/** Fields that jobs of all releases have. */
export const JobHead = Type.Object({ name: Type.String(), schema: Type.Integer() });
