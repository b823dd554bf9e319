import { type Static, type TObject, Type } from 'typebox';
import { freeBuffer } from '../../platform/bytes/buffers.ts';
import { type ByteSource, bytesOf } from '../../platform/bytes/byte-source.ts';
import { ConflictError, InvalidRequestError, UnavailableError } from '../../platform/errors/errors.ts';
import type { BodyBuffer, WriteBody } from '../../platform/payloads/body-buffer.ts';
import { type BodyEncoding, inflate } from '../../platform/payloads/inflate.ts';
import { inSlices, timeSliceBytes } from '../../platform/slices/slices.ts';
import { isHeld, LeaseFence } from '../../updates/fence.ts';
import { LeaseLostError } from '../../updates/lease-loss.ts';
import type { RollbackState } from '../../updates/rollback-detection/rollback-state.ts';
import type { UpdateRepository, UpdateRow } from '../../updates/update-repository.ts';
import type {
  CheckpointOrder,
  CheckpointRepository,
  CommittedCheckpoint,
  NewCheckpoint,
} from './checkpoint-repository.ts';
import { type CheckpointDelta, DeltaBases, InvalidDeltaError, parseDelta, spliceDelta } from './delta.ts';
import { LateScan, type ScannedMember } from './deployment-scanner.ts';
import type { DocumentReader } from './document-reader.ts';
import type { DocumentStore } from './document-store.ts';
import { saveDocument, smallBody } from './save-document.ts';

export const CheckpointKind = Type.Union([Type.Literal('full'), Type.Literal('verbatim'), Type.Literal('delta')]);
export type CheckpointKind = Static<typeof CheckpointKind>;

/**
 * For a verbatim checkpoint, the CLI sends the whole document in `untypedDeployment`; the contract uses `version` and `deployment`, as in a
 * full checkpoint.
 */
const CheckpointDialect = Type.Union([Type.Literal('pulumi'), Type.Literal('contract')]);

const fields = {
  kind: CheckpointKind,
  dialect: CheckpointDialect,
  fence: LeaseFence,
  /** For full checkpoints only; see `updates.assignArrivalSequence`. */
  arrivalSequence: Type.Union([Type.Integer(), Type.Null()]),
};
type CheckpointJob = Static<TObject<typeof fields>>;

/** For a CLI without journaling. The API runs the job for a small body, a worker for a large one. */
export const applyCheckpoint = {
  name: 'apply-checkpoint',
  schemas: [1],
  fields,
  label: ({ kind }: CheckpointJob) => kind,
  budget: 'writes',
  // A process that was frozen could give an old call a later position than the repeated call.
  onlyWhileAwaited: ({ kind }: CheckpointJob) => kind === 'full',
  run: async ({ writer }: { readonly writer: CheckpointWriter }, job: CheckpointJob, body: WriteBody) =>
    writer.write({
      ...job,
      ...(await body.open({ parsed: job.kind === 'delta' })),
    }),
} as const;

/** The body is as received, and readable more than once. */
export interface CheckpointWrite {
  readonly kind: CheckpointKind;
  readonly dialect: Static<typeof CheckpointDialect>;
  readonly arrivalSequence: number | null;
  readonly fence: LeaseFence;
  readonly body: ByteSource;
  readonly encoding: BodyEncoding;
  /** The body, if it is already inflated in memory. */
  readonly inflated?: Buffer | null;
  /** A delta with a larger base is refused with LargeBaseError, for a worker to apply. */
  readonly maxBaseBytes?: number;
  /** Frees the memory of the body, which is not read again. */
  readonly free?: () => void;
}

export class LargeBaseError extends Error {
  override readonly name = 'LargeBaseError';
  readonly baseBytes: number;

  constructor(baseBytes: number) {
    super(`The base of the delta has ${baseBytes} bytes`);
    this.baseBytes = baseBytes;
  }
}

interface AppliedDelta {
  readonly state: NewCheckpoint;
  /** Null unless it is small. */
  readonly text: Buffer | null;
}

/** A delta is applied again if another write of the same update was committed in between. */
const deltaAttempts = 3;

/**
 * Stores the document's exact bytes and commits them behind the lease's fence. Memory is bounded by the chunk size for full and verbatim
 * bodies. The body of a delta is buffered whole, but its base is not.
 */
export class CheckpointWriter {
  readonly #updates: UpdateRepository;
  readonly #checkpoints: CheckpointRepository;
  readonly #rollbackState: Pick<RollbackState, 'beginWrite'>;
  readonly #documents: DocumentStore;
  readonly #documentReader: DocumentReader;
  readonly #bodyBuffer: BodyBuffer;
  readonly #bases = new DeltaBases();
  readonly #maxBytes: number;

  constructor(parts: {
    updates: UpdateRepository;
    checkpoints: CheckpointRepository;
    rollbackState: Pick<RollbackState, 'beginWrite'>;
    documents: DocumentStore;
    documentReader: DocumentReader;
    bodyBuffer: BodyBuffer;
    maxBodyBytes: number;
  }) {
    this.#updates = parts.updates;
    this.#checkpoints = parts.checkpoints;
    this.#rollbackState = parts.rollbackState;
    this.#documents = parts.documents;
    this.#documentReader = parts.documentReader;
    this.#bodyBuffer = parts.bodyBuffer;
    this.#maxBytes = parts.maxBodyBytes;
  }

  /**
   * Resolves once the write is committed, or at once if it already was (same sequence number). Throws LeaseLostError, InvalidRequestError,
   * PayloadTooLargeError, ConflictError and LargeBaseError. These change nothing; after any other error a retry is safe.
   */
  async write(write: CheckpointWrite): Promise<void> {
    if (write.kind === 'delta') {
      const apply = async (body: Buffer) => this.#writeDelta(write.fence, await parseDelta(body), write.maxBaseBytes);
      if (write.inflated) return apply(write.inflated);
      return this.#bodyBuffer.use(write.body, write.encoding, apply, write.fence.stackId);
    }
    return this.#writeWhole(write);
  }

  async #writeWhole(write: CheckpointWrite): Promise<void> {
    const { fence, arrivalSequence } = write;
    const shape = write.kind === 'verbatim' && write.dialect === 'pulumi' ? 'untypedDeployment' : 'members';
    let sequenceNumber: number | null = null;
    const state = await saveDocument(
      this.#documents,
      smallBody(write.inflated, this.#maxBytes) ?? (() => inflate(write.body, write.encoding, this.#maxBytes)),
      shape,
      async (scan) => {
        sequenceNumber = sequenceNumberOf(write, scan.members.get('sequenceNumber'));
        // For a small body, the commit makes this check.
        if (sequenceNumber === null || write.inflated) return;
        if ((await this.#held(fence)).checkpointSequence >= sequenceNumber) throw new DuplicateWrite();
      },
    ).catch((error: unknown) => {
      if (error instanceof DuplicateWrite) return null;
      throw error;
    });
    if (!state) return;
    // The body would otherwise stay in memory during the commit.
    write.free?.();
    const order: CheckpointOrder = { sequenceNumber, arrivalSequence, baseCheckpointId: null };
    if (!(await this.#commit(fence, state, order))) await this.#explainRejection(fence, order, 'conflict-is-final');
  }

  async #writeDelta(fence: LeaseFence, delta: CheckpointDelta, maxBaseBytes?: number): Promise<void> {
    if (await this.#writeNextDelta(fence, delta)) return;
    for (let attempt = 1; attempt <= deltaAttempts; attempt++) {
      const update = await this.#held(fence);
      if (update.checkpointSequence >= delta.sequenceNumber) return;
      const base = update.checkpointId ? await this.#checkpoints.find(update.checkpointId) : null;
      if (update.checkpointId && !base) continue;
      // The first write of an update is never a delta: the text before it belongs to another update.
      if (!base || base.updateId !== fence.updateId)
        throw new InvalidDeltaError('There is no checkpoint of this update to apply the delta to');
      if (maxBaseBytes !== undefined && base.sizeBytes > maxBaseBytes) throw new LargeBaseError(base.sizeBytes);
      const applied = await this.#applyDelta(() => this.#documentReader.open(base), base.sizeBytes, delta);
      if (await this.#commitDelta(fence, base.id, applied, delta)) return;
    }
    throw new UnavailableError('Other checkpoints of this update are being committed at the same time; please retry');
  }

  /**
   * Uses the text that this process wrote last. Returns false if there is none, or if it may no longer be the update's checkpoint; the
   * delta is then applied to the checkpoint itself, which determines any error.
   */
  async #writeNextDelta(fence: LeaseFence, delta: CheckpointDelta): Promise<boolean> {
    const base = this.#bases.take(fence.updateId);
    if (!base) return false;
    let applied: AppliedDelta;
    try {
      applied = await this.#applyDelta(bytesOf(base.text), base.text.length, delta);
    } catch (error) {
      if (error instanceof InvalidRequestError) return false;
      throw error;
    }
    // The text has no other owner; another attempt reads the checkpoint.
    freeBuffer(base.text);
    return this.#commitDelta(fence, base.checkpointId, applied, delta);
  }

  /** Returns true if the delta is committed, or was already. Otherwise it needs another base. */
  async #commitDelta(
    fence: LeaseFence,
    baseCheckpointId: string,
    { state, text }: AppliedDelta,
    { sequenceNumber }: CheckpointDelta,
  ): Promise<boolean> {
    const order: CheckpointOrder = { sequenceNumber, arrivalSequence: null, baseCheckpointId };
    const written = await this.#commit(fence, state, order);
    if (!written) return this.#explainRejection(fence, order, 'conflict-is-retried');
    if (text) this.#bases.keep(fence.updateId, { checkpointId: written.id, text });
    return true;
  }

  async #commit(fence: LeaseFence, state: NewCheckpoint, order: CheckpointOrder): Promise<CommittedCheckpoint | null> {
    const noteWrite = this.#rollbackState.beginWrite();
    const written = await this.#checkpoints.commit(fence, state, order);
    if (written) noteWrite(written.position);
    return written;
  }

  /** Takes one pass over the base. */
  async #applyDelta(
    base: ByteSource,
    baseBytes: number,
    { edits, checkpointHash }: CheckpointDelta,
  ): Promise<AppliedDelta> {
    const addedBytes = edits.reduce((sum, { newText }) => sum + newText.length, 0);
    const spliced = spliceDelta(base(), edits);
    // One chunk is enough, and each chunk costs several event loop ticks.
    const text = baseBytes + addedBytes <= timeSliceBytes ? Buffer.concat(await Array.fromAsync(spliced)) : null;
    const scan = new LateScan();
    const result = (): AsyncIterable<Buffer> => scan.watch(inSlices(text ? [text] : spliced));
    let resourceCount = 0;
    const document = await this.#documents.save(result, (sha256) => {
      if (sha256.toString('hex') !== checkpointHash) {
        throw new InvalidDeltaError('The checkpoint with the delta applied does not have the given hash');
      }
      resourceCount = scan.end().resourceCount;
    });
    return { state: { document, resourceCount }, text };
  }

  /** Throws LeaseLostError. */
  async #held(fence: LeaseFence): Promise<UpdateRow> {
    const update = await this.#updates.find(fence.updateId);
    if (!update || !isHeld(update, fence)) throw new LeaseLostError();
    return update;
  }

  /** Throws the reason why a fenced write changed nothing. Returns true if nothing remains to be done, false if a retry may succeed. */
  async #explainRejection(
    fence: LeaseFence,
    write: CheckpointOrder,
    onConflict: 'conflict-is-retried' | 'conflict-is-final',
  ): Promise<boolean> {
    const update = await this.#held(fence);
    if (!update.exclusive || update.dryRun || update.kind === 'preview')
      throw new ConflictError('A preview writes no state');
    if (write.sequenceNumber !== null && update.checkpointSequence >= write.sequenceNumber) return true;
    // A newer full checkpoint was committed before this one.
    if (write.arrivalSequence !== null && update.fullCommitted >= write.arrivalSequence) return true;
    if (onConflict === 'conflict-is-retried') return false;
    throw new UnavailableError('The checkpoint could not be committed; please retry');
  }
}

class DuplicateWrite extends Error {}

/** The number identifies a repeated call. That of full checkpoints in `application/vnd.service+8` is checked but otherwise unused. */
function sequenceNumberOf({ kind, dialect }: CheckpointWrite, member: ScannedMember | undefined): number | null {
  if (kind === 'verbatim') return readSequenceNumber(member);
  if (dialect === 'contract' && member) readSequenceNumber(member);
  return null;
}

function readSequenceNumber(member: ScannedMember | undefined): number {
  const number = member?.kind === 'number' ? Number(member.text) : Number.NaN;
  if (!Number.isSafeInteger(number) || number < 0 || number > 2 ** 31 - 1) {
    throw new InvalidRequestError('sequenceNumber is not an integer from 0 to 2147483647');
  }
  return number;
}
