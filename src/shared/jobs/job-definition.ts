import { type Static, type TObject, type TProperties, type TUnsafe, Type } from 'typebox';
import type { CheckpointWriter } from '../checkpoints/checkpoint-writer.ts';
import { BodyEncoding } from '../documents/byte-source.ts';
import type { WriteBody } from '../documents/write-body.ts';
import type { EventWriter } from '../events/event-writer.ts';
import type { JournalCompactor } from '../journal/journal-compactor.ts';
import type { JournalWriter } from '../journal/journal-writer.ts';
import type { RoomName } from '../platform/payloads/room-rules.ts';
import type { DeploymentImporter } from '../states/deployment-importer.ts';
import type { StackRenamer } from '../states/stack-renamer.ts';
import type { AdmittedChanges } from '../updates/admitted-changes.ts';

/** What jobs work with, in every process that runs them. */
export interface JobServices {
  readonly changes: AdmittedChanges;
  readonly eventWriter: EventWriter;
  readonly compactor: JournalCompactor;
  readonly importer: DeploymentImporter;
  readonly journalWriter: JournalWriter;
  readonly renamer: StackRenamer;
  readonly writer: CheckpointWriter;
  /** Sees that a fold point is made at some time. Never rejects: it only saves time later. */
  readonly requestSnapshot: (updateId: string) => Promise<void>;
}

/** Where the body of a queued job lies. */
export const QueuedBody = Type.Object({ payloadKey: Type.String(), encoding: BodyEncoding });
export type QueuedBody = Static<typeof QueuedBody>;

/** A job as it is made and run: what it carries, under its name. */
type JobOf<N extends string, P extends TProperties> = Static<TObject<P>> & { name: N; schema: number };

/** A job without a body. */
export interface TaskDefinition<N extends string, P extends TProperties> {
  /** The schema of what is queued. A job of another release that this one does not know does not match. */
  readonly record: TUnsafe<JobOf<N, P>>;
  /** The job, as this release makes it. */
  create(payload: Static<TObject<P>>): JobOf<N, P>;
  /** `beforeCommit` may throw, and nothing is committed then. */
  run(services: JobServices, job: JobOf<N, P>, beforeCommit?: () => Promise<void>): Promise<void>;
}

/**
 * A job with a body: a write, as routes submit it. `I` is what a route knows of it before the body has come, `J` the job without its
 * body.
 */
export interface WriteDefinition<I, J> {
  readonly record: TUnsafe<J & QueuedBody>;
  /** Label in the metrics. */
  readonly label: (input: I) => string;
  /** `imports`: of calls that the CLI does not repeat, which wait for room instead of being refused. */
  readonly room: RoomName;
  /**
   * Do nothing for a client that is gone when its body is here: it may have repeated the call elsewhere, and this one has
   * no number by which to tell.
   */
  readonly onlyWhileAwaited?: ((input: I) => boolean) | undefined;
  /** The job, as this release makes it; asked for when the body is all here. */
  admit(services: JobServices, input: I): Promise<J>;
  run(services: JobServices, job: J, body: WriteBody): Promise<void>;
  /**
   * For writes that must not be committed once their client was told of an error. Given an error from the attempt to commit:
   * resolves when the write is committed nevertheless; otherwise throws what to tell, and the write never will be.
   */
  readonly resolveFailure?: ((services: JobServices, job: J, error: unknown) => Promise<void>) | undefined;
}

interface Common<N extends string, P extends TProperties> {
  readonly name: N;
  /**
   * The versions of the payload that this release reads; it writes the last. A payload that changes its meaning gets another number, so
   * that processes of two releases can share a queue: a job that a release does not know it leaves to the other.
   */
  readonly schemas: readonly number[];
  readonly payload: P;
}

/** Describes a job without a body. */
export function defineTask<const N extends string, P extends TProperties>(
  definition: Common<N, P> & Pick<TaskDefinition<N, P>, 'run'>,
): TaskDefinition<N, P> {
  const { run } = definition;
  return { record: Type.Unsafe(recordOf(definition)), create: creatorOf(definition), run };
}

/** Describes a job with a body. `admit` makes its payload of what a route knows, where that is not all of it. */
export function defineWrite<const N extends string, P extends TProperties, I = Static<TObject<P>>>({
  admit,
  ...definition
}: Common<N, P> &
  Pick<WriteDefinition<I, JobOf<N, P>>, 'label' | 'room' | 'onlyWhileAwaited' | 'run' | 'resolveFailure'> & {
    readonly admit?: (services: JobServices, input: I) => Promise<Static<TObject<P>>>;
  }): WriteDefinition<I, JobOf<N, P>> {
  const { label, room, onlyWhileAwaited, run, resolveFailure } = definition;
  const create = creatorOf(definition);
  const payloadOf = admit ?? (async (_services: JobServices, input: I) => input as unknown as Static<TObject<P>>);
  return {
    record: Type.Unsafe(recordOf(definition, QueuedBody.properties)),
    label,
    room,
    onlyWhileAwaited,
    admit: async (services, input) => create(await payloadOf(services, input)),
    run,
    resolveFailure,
  };
}

function recordOf<N extends string, P extends TProperties>(
  { name, schemas, payload }: Common<N, P>,
  body: TProperties = {},
) {
  const schema = Type.Union(schemas.map((version) => Type.Literal(version)));
  return Type.Object({ name: Type.Literal(name), schema, ...payload, ...body });
}

function creatorOf<N extends string, P extends TProperties>({ name, schemas }: Common<N, P>) {
  const schema = schemas.at(-1) as number;
  return (payload: Static<TObject<P>>): JobOf<N, P> => ({ ...payload, name, schema });
}
