import { type Static, Type } from 'typebox';
import { CheckpointEnvelope, CheckpointKind } from '../checkpoints/checkpoint-writer.ts';
import { StackRef } from '../stacks/names.ts';
import { Admission, type StackHead } from '../updates/admitted-changes.ts';
import { LeaseFence } from '../updates/lease.ts';
import { defineTask, defineWrite } from './job-definition.ts';

/** Saves a checkpoint of a running update, in one of the forms in which a CLI without journaling sends it. */
export const applyCheckpoint = defineWrite({
  name: 'apply-checkpoint',
  schemas: [1],
  payload: {
    kind: CheckpointKind,
    /** The CLI's in jobs without it, which the previous release makes. */
    envelope: Type.Optional(CheckpointEnvelope),
    fence: LeaseFence,
    /** Of full checkpoints: their place in the order in which they came in. */
    arrivalSequence: Type.Union([Type.Integer(), Type.Null()]),
  },
  label: ({ kind }) => kind,
  room: 'writes',
  // A process that was frozen gives an old call a new place, after the repeat of that call.
  onlyWhileAwaited: ({ kind }) => kind === 'full',
  run: async ({ writer }, job, body) =>
    writer.write({
      ...job,
      envelope: job.envelope ?? 'cli',
      ...(await body.open({ parsedWeight: job.kind === 'delta' })),
    }),
});

/** Adds a batch of entries to the journal of a running update. */
export const appendJournal = defineWrite({
  name: 'append-journal',
  schemas: [1],
  payload: { fence: LeaseFence },
  label: () => 'journal',
  room: 'writes',
  run: async ({ journalWriter, requestSnapshot }, { fence }, body) => {
    const { snapshotDue } = await body.use((entries) => journalWriter.append(fence, entries));
    // A job of its own: the entries are committed whatever becomes of it, and their call does not wait for it.
    if (snapshotDue) await requestSnapshot(fence.updateId);
  },
});

/** Records a batch of engine events of a running update. */
export const appendEvents = defineWrite({
  name: 'append-events',
  schemas: [1],
  payload: { fence: LeaseFence },
  label: () => 'events',
  room: 'writes',
  run: ({ eventWriter }, { fence }, body) => body.use((events) => eventWriter.append(fence, events)),
});

const importTarget = {
  stackId: Type.String(),
  /** Chosen before the job, so that a repeat of the job finds what the first run committed. */
  updateId: Type.String(),
  requestedBy: Type.String(),
};

/** An import before its body has come: of the head that it may replace, not yet until when. */
export interface ImportInput {
  readonly stackId: string;
  readonly updateId: string;
  readonly requestedBy: string;
  readonly head: StackHead;
}

/** Makes a deployment document a new version of a stack. */
export const importDeployment = defineWrite({
  name: 'import-deployment',
  // Since schema 2 with an admission: without, an import that waited long would undo what came after.
  schemas: [2],
  payload: { ...importTarget, admission: Admission },
  label: () => 'import',
  room: 'imports',
  onlyWhileAwaited: () => true,
  admit: async ({ changes }, { head, ...target }: ImportInput) => ({ ...target, admission: await changes.admit(head) }),
  run: async ({ importer }, job, body) => importer.import({ ...job, ...(await body.open()) }),
  resolveFailure: ({ changes }, { updateId }, error) => changes.resolveFailure(updateId, error),
});

/** Renames a stack, and every mention of it in its state. */
export const renameStack = defineTask({
  name: 'rename-stack',
  schemas: [1],
  payload: { ...importTarget, admission: Admission, from: StackRef, to: StackRef },
  run: ({ renamer }, job, beforeCommit) => renamer.rename(job, beforeCommit),
});

/** Makes a checkpoint of the journal of an update. */
export const compactJournal = defineTask({
  name: 'fold-journal',
  schemas: [1],
  payload: { updateId: Type.String() },
  run: ({ compactor }, { updateId }) => compactor.compact(updateId),
});

/** Stores how far the replay of a journal is. */
export const advanceFold = defineTask({
  name: 'advance-fold',
  schemas: [1],
  payload: { updateId: Type.String() },
  run: ({ compactor }, { updateId }) => compactor.takeSnapshot(updateId),
});

/** What is queued: ids only. Bodies lie in the payload store under `payloadKey`. */
export const Job = Type.Union([
  applyCheckpoint.record,
  appendJournal.record,
  appendEvents.record,
  importDeployment.record,
  renameStack.record,
  compactJournal.record,
  advanceFold.record,
]);
export type Job = Static<typeof Job>;
export type JobName = Job['name'];

/** What jobs of all releases have in common. */
export const JobHead = Type.Object({ name: Type.String(), schema: Type.Integer() });
