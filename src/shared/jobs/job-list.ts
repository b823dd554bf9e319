import { type Static, type TObject, type TProperties, type TUnsafe, Type } from 'typebox';
import { appendEvents, type EventWriter } from '../events/event-writer.ts';
import { currentRequest } from '../platform/logger/request-lines.ts';
import type { WriteBody } from '../platform/payloads/body-buffer.ts';
import type { BudgetName } from '../platform/payloads/in-flight-rules.ts';
import { BodyEncoding } from '../platform/payloads/inflate.ts';
import { currentTraceparent } from '../platform/tracing/tracing.ts';
import { StackRef } from '../stacks/names.ts';
import { applyCheckpoint, type CheckpointWriter } from '../state/checkpoints/checkpoint-writer.ts';
import { type DeploymentImporter, editTarget, importDeployment } from '../state/deployment-importer.ts';
import type { StateEdits } from '../state/edits/state-edits.ts';
import type { IncrementalCompaction } from '../state/journal/incremental/incremental-compaction.ts';
import type { JournalCompactor } from '../state/journal/journal-compactor.ts';
import { appendJournal, type JournalWriter } from '../state/journal/journal-writer.ts';
import type { StackRenamer } from '../state/stack-renamer.ts';

export interface JobServices {
  readonly stateEdits: StateEdits;
  readonly eventWriter: EventWriter;
  readonly compactor: JournalCompactor;
  /** If false, a job throws JournalClaimedError while another process compacts its journal. */
  readonly waitsForClaims?: boolean;
  readonly importer: DeploymentImporter;
  readonly journalWriter: JournalWriter;
  readonly renamer: StackRenamer;
  readonly writer: CheckpointWriter;
  /** Never rejects, because a snapshot only saves time later. */
  readonly requestSnapshot: (updateId: string) => Promise<void>;
  readonly incrementalCompaction: IncrementalCompaction;
  /** The compaction runs here or on a worker. Never rejects. */
  readonly requestIncremental: (updateId: string) => Promise<void>;
}

export const QueuedBody = Type.Object({ payloadKey: Type.String(), encoding: BodyEncoding });
export type QueuedBody = Static<typeof QueuedBody>;

/** Also renames all references in the state. */
export const renameStack = defineJob({
  name: 'rename-stack',
  schemas: [1],
  fields: { ...editTarget, from: StackRef, to: StackRef },
  run: ({ renamer }, job, beforeCommit) => renamer.rename(job, beforeCommit),
});

export const compactJournal = defineJob({
  name: 'compact-journal',
  schemas: [1],
  fields: { updateId: Type.String() },
  run: ({ compactor, waitsForClaims }, { updateId }) => compactor.compact(updateId, waitsForClaims),
});

export const snapshotJournal = defineJob({
  name: 'snapshot-journal',
  schemas: [1],
  fields: {
    updateId: Type.String(),
    /** Only compacts the journal incrementally in the worker's memory. */
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

/** Bodies are in the payload store under `payloadKey`. */
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

export const jobNames: readonly JobName[] = [
  ...[applyCheckpoint, appendJournal, appendEvents, importDeployment],
  ...[renameStack, compactJournal, snapshotJournal],
].map(({ name }) => name);

/** The fields common to jobs of all releases. */
export const JobHead = Type.Object({ name: Type.String(), schema: Type.Integer() });

type JobOf<N extends string, P extends TProperties> = Static<TObject<P>> & {
  name: N;
  schema: number;
  /** Part of each log line of the job. Missing without a request. */
  requestId?: string;
  /** The trace that the job continues (W3C Trace Context). Missing if its request is not traced. */
  traceparent?: string;
};

/** A job without a body. */
export interface JobDefinition<N extends string, P extends TProperties> {
  readonly name: N;
  /** Does not match jobs that this release does not know. */
  readonly record: TUnsafe<JobOf<N, P>>;
  /** The job has this release's format. */
  create(fields: Static<TObject<P>>): JobOf<N, P>;
  /** If `beforeCommit` throws, nothing is committed. */
  run(services: JobServices, job: JobOf<N, P>, beforeCommit?: () => Promise<void>): Promise<void>;
}

interface Common<N extends string, P extends TProperties> {
  readonly name: N;
  /**
   * The versions of the fields that this release reads; it writes the last one. Fields with another meaning get a new number. Two releases
   * can thus share a queue: each leaves jobs that it does not know to the other.
   */
  readonly schemas: readonly number[];
  readonly fields: P;
}

function defineJob<const N extends string, P extends TProperties>(
  definition: Common<N, P> & Pick<JobDefinition<N, P>, 'run'>,
): JobDefinition<N, P> {
  const { name, schemas, run } = definition;
  const schema = schemas.at(-1) as number;
  const create = (fields: Static<TObject<P>>): JobOf<N, P> => {
    return { ...fields, name, schema, ...originOfJob() };
  };
  return { name, record: Type.Unsafe(recordOf(definition)), create, run };
}

/** A job with a body: `Q` in its queued form, `J` without the fields of the body. `I` is what a route knows before the body has arrived. */
export interface WriteDefinition<J, I, Q = J & QueuedBody> extends WriteOptions<J, I> {
  readonly name: string;
  readonly record: TUnsafe<Q>;
  /** The job has this release's format. Called when the body is complete. */
  create(services: JobServices, input: I): Promise<J>;
  queued(job: J, body: QueuedBody): Q;
}

interface WriteOptions<J, I> {
  /** A label in the metrics. */
  label(input: I): string;
  /** Calls that the CLI does not repeat use `imports`: they wait for capacity instead of being refused. */
  readonly budget: BudgetName;
  /**
   * Skips the write if the client has disconnected before its body is complete: it may have repeated the call elsewhere, and no number
   * identifies the repetition.
   */
  onlyWhileAwaited?(input: I): boolean;
  run(services: JobServices, job: J, body: WriteBody): Promise<void>;
  /**
   * For writes that must not be committed after their client got an error. Resolves if the write is committed nevertheless; otherwise
   * throws the error for the client and prevents the commit.
   */
  resolveFailure?(services: JobServices, job: J, error: unknown): Promise<void>;
}

type WriteSource<N extends string, P extends TProperties, I> = Common<N, P> & WriteOptions<JobOf<N, P>, I>;

/** The route knows the fields. */
function defineWrite<const N extends string, P extends TProperties>(
  definition: WriteSource<N, P, Static<TObject<P>>>,
): WriteDefinition<JobOf<N, P>, Static<TObject<P>>> {
  return defineWriteOf({ ...definition, fieldsOf: async (_services, fields) => fields });
}

/** The fields are known only when the body is complete. */
function defineWriteOf<const N extends string, P extends TProperties, I>(
  definition: WriteSource<N, P, I> & {
    fieldsOf(services: JobServices, input: I): Promise<Static<TObject<P>>>;
  },
): WriteDefinition<JobOf<N, P>, I> {
  const { name, fields: _, fieldsOf, schemas, ...options } = definition;
  const schema = schemas.at(-1) as number;
  return {
    ...options,
    name,
    record: Type.Unsafe(recordOf(definition, QueuedBody.properties)),
    create: async (services, input) => ({ ...(await fieldsOf(services, input)), name, schema }),
    queued: (job, body) => ({ ...job, ...originOfJob(), ...body }),
  };
}

function originOfJob(): { requestId?: string; traceparent?: string } {
  const requestId = currentRequest();
  const traceparent = currentTraceparent();
  return {
    ...(requestId === undefined ? {} : { requestId }),
    ...(traceparent === undefined ? {} : { traceparent }),
  };
}

function recordOf<N extends string, P extends TProperties>(
  { name, schemas, fields }: Common<N, P>,
  body: TProperties = {},
) {
  const schema = Type.Union(schemas.map((version) => Type.Literal(version)));
  const origin = { requestId: Type.Optional(Type.String()), traceparent: Type.Optional(Type.String()) };
  return Type.Object({ name: Type.Literal(name), schema, ...origin, ...fields, ...body });
}
