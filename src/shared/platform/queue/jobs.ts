import { Type } from 'typebox';
import { Rejection } from '../errors/outcome.ts';

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
  fence: Fence,
  /** Of full checkpoints: their place in the order in which they came in. */
  fullOrder: Type.Union([Type.Integer(), Type.Null()]),
  ...Handover,
});
export type ApplyCheckpointJob = Type.Static<typeof ApplyCheckpointJob>;

export const ImportDeploymentJob = Type.Object({
  name: Type.Literal('import-deployment'),
  schema: Type.Literal(1),
  stackId: Type.String(),
  /** Chosen before the job, so that a repeat of the job finds what the first run committed. */
  updateId: Type.String(),
  requestedBy: Type.String(),
  ...Handover,
});
export type ImportDeploymentJob = Type.Static<typeof ImportDeploymentJob>;

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
  AppendJournalJob,
  AppendEventsJob,
  FoldJournalJob,
  AdvanceFoldJob,
]);
export type Job = Type.Static<typeof Job>;
export type JobName = Job['name'];

/** What a job came to: committed, or refused for good. Faults are thrown instead, and retried. */
export const JobOutcome = Type.Union([
  Type.Object({ result: Type.Literal('committed') }),
  Type.Object({ result: Type.Literal('rejected'), rejection: Rejection }),
]);
export type JobOutcome = Type.Static<typeof JobOutcome>;

/** Runs one job to its outcome. Total by type: a job without a processor does not compile. */
export type JobProcessors = { readonly [N in JobName]: (job: Extract<Job, { name: N }>) => Promise<void> };
