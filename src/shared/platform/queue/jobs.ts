import { Type } from 'typebox';
import { Rejection } from '../errors/outcome.ts';
import type { BodySeal } from './handover-store.ts';

/**
 * Jobs carry ids only: bodies lie in the hand-over store under `handoverKey`. `schema` is raised when a payload changes its
 * meaning, so that processes of two releases can share a queue.
 */
const Fence = Type.Object({ updateId: Type.String(), stackId: Type.String(), epoch: Type.Integer() });
const Handover = { handoverKey: Type.String(), encoding: Type.Union([Type.Literal('gzip'), Type.Literal('identity')]) };

export const ApplyCheckpointJob = Type.Object({
  name: Type.Literal('apply-checkpoint'),
  schema: Type.Literal(1),
  kind: Type.Union([Type.Literal('full'), Type.Literal('verbatim'), Type.Literal('delta')]),
  /** The CLI's in jobs without it, which the release before this one makes. */
  envelope: Type.Optional(Type.Union([Type.Literal('cli'), Type.Literal('contract')])),
  fence: Fence,
  /** Of full checkpoints: their place in the order in which they came in. */
  fullOrder: Type.Union([Type.Integer(), Type.Null()]),
  ...Handover,
});
export type ApplyCheckpointJob = Type.Static<typeof ApplyCheckpointJob>;

/** The head that a change may replace, and until when. */
const Admission = Type.Object({
  stackVersion: Type.Integer(),
  checkpointId: Type.Union([Type.String(), Type.Null()]),
  deadline: Type.String(),
});

export const ImportDeploymentJob = Type.Object({
  name: Type.Literal('import-deployment'),
  schema: Type.Literal(2),
  stackId: Type.String(),
  /** Chosen before the job, so that a repeat of the job finds what the first run committed. */
  updateId: Type.String(),
  /** Since schema 2: without, an import that waited long would undo what came after. */
  admission: Admission,
  requestedBy: Type.String(),
  ...Handover,
});
export type ImportDeploymentJob = Type.Static<typeof ImportDeploymentJob>;

const Place = Type.Object({ organization: Type.String(), project: Type.String(), stack: Type.String() });

export const RenameStackJob = Type.Object({
  name: Type.Literal('rename-stack'),
  schema: Type.Literal(1),
  stackId: Type.String(),
  /** As of an import. */
  updateId: Type.String(),
  admission: Admission,
  from: Place,
  to: Place,
  requestedBy: Type.String(),
});
export type RenameStackJob = Type.Static<typeof RenameStackJob>;

export const AppendJournalJob = Type.Object({
  name: Type.Literal('append-journal'),
  schema: Type.Literal(1),
  fence: Fence,
  ...Handover,
});
export type AppendJournalJob = Type.Static<typeof AppendJournalJob>;

export const AppendEventsJob = Type.Object({
  name: Type.Literal('append-events'),
  schema: Type.Literal(1),
  fence: Fence,
  ...Handover,
});
export type AppendEventsJob = Type.Static<typeof AppendEventsJob>;

export const FoldJournalJob = Type.Object({
  name: Type.Literal('fold-journal'),
  schema: Type.Literal(1),
  updateId: Type.String(),
});
export type FoldJournalJob = Type.Static<typeof FoldJournalJob>;

export const AdvanceFoldJob = Type.Object({
  name: Type.Literal('advance-fold'),
  schema: Type.Literal(1),
  updateId: Type.String(),
});
export type AdvanceFoldJob = Type.Static<typeof AdvanceFoldJob>;

export const Job = Type.Union([
  ApplyCheckpointJob,
  ImportDeploymentJob,
  RenameStackJob,
  AppendJournalJob,
  AppendEventsJob,
  FoldJournalJob,
  AdvanceFoldJob,
]);
export type Job = Type.Static<typeof Job>;
export type JobName = Job['name'];

/** What jobs of all releases have in common. */
export const JobHead = Type.Object({ name: Type.String(), schema: Type.Integer() });

/** What a job came to: committed, or refused for good. Faults are thrown instead, and retried. */
export const JobOutcome = Type.Union([
  Type.Object({ result: Type.Literal('committed') }),
  Type.Object({ result: Type.Literal('rejected'), rejection: Rejection }),
]);
export type JobOutcome = Type.Static<typeof JobOutcome>;

/** Runs one job to its outcome; the seal is that of its body. Total by type: a job without a processor does not compile. */
export type JobProcessors = {
  readonly [N in JobName]: (job: Extract<Job, { name: N }>, seal: BodySeal | null) => Promise<void>;
};
