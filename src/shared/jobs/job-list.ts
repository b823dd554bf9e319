import { type Static, Type } from 'typebox';
import { appendEvents } from '../events/event-writer.ts';
import { StackRef } from '../stacks/names.ts';
import { applyCheckpoint } from '../state/checkpoints/checkpoint-writer.ts';
import { editTarget, importDeployment } from '../state/deployment-importer.ts';
import { appendJournal } from '../state/journal/journal-writer.ts';
import { defineJob, defineWrite, defineWriteOf } from './job-definition.ts';

/** Renames a stack, including all references in its state. */
export const renameStack = defineJob({
  name: 'rename-stack',
  schemas: [1],
  fields: { ...editTarget, from: StackRef, to: StackRef },
  run: ({ renamer }, job, beforeCommit) => renamer.rename(job, beforeCommit),
});

/** Compacts the journal of an update into a checkpoint. */
export const compactJournal = defineJob({
  name: 'compact-journal',
  schemas: [1],
  fields: { updateId: Type.String() },
  run: ({ compactor, waitsForClaims }, { updateId }) => compactor.compact(updateId, waitsForClaims),
});

/** Takes a snapshot of the replay of a journal, or only compacts it incrementally in the worker's memory. */
export const snapshotJournal = defineJob({
  name: 'snapshot-journal',
  schemas: [1],
  fields: {
    updateId: Type.String(),
    /** Whether the journal is only compacted in the worker's memory. */
    incremental: Type.Optional(Type.Boolean()),
  },
  run: async ({ compactor, incrementalCompaction }, { updateId, incremental }) => {
    if (incremental === true) incrementalCompaction.request(updateId);
    else await compactor.takeSnapshot(updateId);
  },
});

export const checkpointWrite = defineWrite(applyCheckpoint);
export const journalWrite = defineWrite(appendJournal);
export const eventWrite = defineWrite(appendEvents);
export const importWrite = defineWriteOf(importDeployment);

/** A queued job: ids only. Bodies are in the payload store under `payloadKey`. */
export const Job = Type.Union([
  checkpointWrite.record,
  journalWrite.record,
  eventWrite.record,
  importWrite.record,
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

/** The fields common to jobs of all releases. */
export const JobHead = Type.Object({ name: Type.String(), schema: Type.Integer() });
