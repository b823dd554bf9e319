import { type Static, type TObject, type TProperties, type TUnsafe, Type } from 'typebox';
import type { EventWriter } from '../events/event-writer.ts';
import { currentRequest } from '../platform/logger/request-lines.ts';
import { currentTraceparent } from '../platform/tracing/tracing.ts';
import { BodyEncoding } from '../state/checkpoints/body-buffer.ts';
import type { CheckpointWriter } from '../state/checkpoints/checkpoint-writer.ts';
import type { DeploymentImporter } from '../state/deployment-importer.ts';
import type { IncrementalCompaction } from '../state/journal/incremental/incremental-compaction.ts';
import type { JournalCompactor } from '../state/journal/journal-compactor.ts';
import type { JournalWriter } from '../state/journal/journal-writer.ts';
import type { StackRenamer } from '../state/stack-renamer.ts';
import type { StateEdits } from '../updates/state-edits.ts';

/** Services that jobs use, in every process that runs them. */
export interface JobServices {
  readonly changes: StateEdits;
  readonly eventWriter: EventWriter;
  readonly compactor: JournalCompactor;
  /** False: a job throws JournalClaimedError while another process compacts its journal. */
  readonly waitsForClaims?: boolean;
  readonly importer: DeploymentImporter;
  readonly journalWriter: JournalWriter;
  readonly renamer: StackRenamer;
  readonly writer: CheckpointWriter;
  /** Requests a snapshot of a journal. Never rejects: a snapshot only saves time later. */
  readonly requestSnapshot: (updateId: string) => Promise<void>;
  readonly incrementalCompaction: IncrementalCompaction;
  /** Requests that a journal is compacted incrementally, here or on a worker. Never rejects. */
  readonly requestIncremental: (updateId: string) => Promise<void>;
}

/** Refers to the body of a queued job. */
export const QueuedBody = Type.Object({ payloadKey: Type.String(), encoding: BodyEncoding });
export type QueuedBody = Static<typeof QueuedBody>;

/** A job: its payload, name and schema, and the request that asked for it. */
type JobOf<N extends string, P extends TProperties> = Static<TObject<P>> & {
  name: N;
  schema: number;
  /** Part of each log line of the job. Missing if no request asked for it. */
  requestId?: string;
  /** The trace that the job continues (W3C Trace Context). Missing if its request is not traced. */
  traceparent?: string;
};

/** A job without a body. */
export interface TaskDefinition<N extends string, P extends TProperties> {
  readonly name: N;
  /** The schema of a queued job. Jobs of other releases that this one does not know do not match. */
  readonly record: TUnsafe<JobOf<N, P>>;
  /** Creates the job as of this release. */
  create(payload: Static<TObject<P>>): JobOf<N, P>;
  /** If `beforeCommit` throws, nothing is committed. */
  run(services: JobServices, job: JobOf<N, P>, beforeCommit?: () => Promise<void>): Promise<void>;
}

interface Common<N extends string, P extends TProperties> {
  readonly name: N;
  /**
   * The payload versions that this release reads; it writes the last. A payload whose meaning changes gets a new number, so that
   * processes of two releases can share a queue: each leaves jobs that it does not know to the other.
   */
  readonly schemas: readonly number[];
  readonly payload: P;
}

/** Defines a job without a body. */
export function defineTask<const N extends string, P extends TProperties>(
  definition: Common<N, P> & Pick<TaskDefinition<N, P>, 'run'>,
): TaskDefinition<N, P> {
  const { name, schemas, run } = definition;
  const schema = schemas.at(-1) as number;
  const create = (payload: Static<TObject<P>>): JobOf<N, P> => {
    return { ...payload, name, schema, ...originOfJob() };
  };
  return { name, record: Type.Unsafe(recordOf(definition)), create, run };
}

/** The schema of a queued write: a job with a body, which is defined beside the code that commits it. */
export function queuedWrite<const N extends string, P extends TProperties>(
  definition: Common<N, P>,
): TUnsafe<JobOf<N, P> & QueuedBody> {
  return Type.Unsafe(recordOf(definition, QueuedBody.properties));
}

/** The request and the trace that the current work belongs to, as a job has them. */
export function originOfJob(): { requestId?: string; traceparent?: string } {
  const requestId = currentRequest();
  const traceparent = currentTraceparent();
  return {
    ...(requestId === undefined ? {} : { requestId }),
    ...(traceparent === undefined ? {} : { traceparent }),
  };
}

function recordOf<N extends string, P extends TProperties>(
  { name, schemas, payload }: Common<N, P>,
  body: TProperties = {},
) {
  const schema = Type.Union(schemas.map((version) => Type.Literal(version)));
  const origin = { requestId: Type.Optional(Type.String()), traceparent: Type.Optional(Type.String()) };
  return Type.Object({ name: Type.Literal(name), schema, ...origin, ...payload, ...body });
}
