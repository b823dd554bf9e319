import type { Queryable } from '../../shared/platform/db/sql.ts';
import { UnavailableError } from '../../shared/platform/errors/errors.ts';
import { formatStackRef, type StackRef } from '../../shared/stacks/names.ts';
import { stackNotFound } from '../../shared/stacks/stack-errors.ts';
import { createStackRepository } from '../../shared/stacks/stack-repository.ts';
import { FrozenError } from '../../shared/updates/rules/freeze.ts';
import { createUpdateRepository } from '../../shared/updates/update-repository.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import type { Caller, Dialect } from '../platform/http/request.ts';
import { noteRefusal } from '../updates/note-refusal.ts';
import { tellOfRefusal } from '../updates/tell-of-freeze.ts';
import { LimitsChangedError } from '../updates/update-admission.ts';
import { type NewUpdateRequest, type PreparedCreation, prepareCreation } from '../updates/update-creation.ts';
import type { UpdateService } from '../updates/update-service.ts';
import { prepareStart, type StartedUpdate, type StartRequest } from '../updates/update-start.ts';
import { readStackView, type StackView } from './stack-view.ts';

/** A larger state is omitted from the response, as is one that exceeds the memory budget; the client then exports it. */
const maxStateBytes = 4 * 1024 * 1024;

/** Maximum number of attempts, if the stack changes during the call. */
const maxAttempts = 5;

interface BegunUpdate {
  readonly updateId: string;
  /** What its user should know. */
  readonly messages: readonly string[];
  readonly started: StartedUpdate;
  readonly view: StackView;
  /** The state that the update starts from, as JSON; null if omitted. */
  readonly state: Buffer | null;
}

interface HeldState {
  readonly bytes: Buffer;
  readonly checkpointId: string | null;
}

/**
 * Creates and starts an update and reads its stack and state in one call: the steps of UpdateService in one transaction. The
 * client waits for one response instead of four.
 */
export class UpdateBeginning {
  readonly #context: ApiContext;
  readonly #updates: UpdateService;

  constructor(context: ApiContext, updates: UpdateService) {
    this.#context = context;
    this.#updates = updates;
  }

  /**
   * Throws what `create` and `start` of UpdateService throw; nothing is created then. The memory of the state is counted until
   * `release` is called; further calls of it do nothing.
   */
  async begin(
    ref: StackRef,
    caller: Caller,
    dialect: Dialect,
    request: NewUpdateRequest & StartRequest,
    audit: AuditTrail,
  ): Promise<{ begun: BegunUpdate; release: () => void }> {
    const { db, metrics } = this.#context;
    const reclaim = this.#updates.reclaim.bind(this.#updates);
    const creation = await prepareCreation(this.#context, { ref, caller, dialect, request }, reclaim);
    const start = prepareStart(this.#context, { ref, caller, request });
    for (let attempt = 1; attempt <= maxAttempts; attempt++) {
      await reclaim(creation.stackId, { admitsFault: creation.preview });
      // Read before the update is created: a state that cannot be read must not leave the stack locked.
      const state = await this.#readState(ref);
      let held = state?.bytes.length ?? 0;
      const release = (): void => {
        this.#context.bufferedBodyBytes.release(held, ref.organization);
        held = 0;
      };
      try {
        const begun = await db.inTransaction(async (tx): Promise<BegunUpdate> => {
          const { messages, updateId } = await creation.run(tx, audit);
          await assertNothingPending(tx, creation);
          const started = await start.run(tx, updateId);
          const stack = await createStackRepository(tx).findById(creation.stackId);
          if (!stack) throw stackNotFound(ref);
          const isBase = state !== null && state.checkpointId === stack.checkpointId;
          const { dryRun, kind } = request;
          const details = { stackId: stack.id, kind, dryRun, created: true, withState: isBase };
          await audit.record(tx, { organization: ref.organization, object: formatStackRef(ref), updateId, details });
          return {
            updateId,
            messages,
            started,
            view: await readStackView(tx, stack),
            state: isBase ? state.bytes : null,
          };
        });
        metrics.updatesStarted.labels(request.kind).inc();
        return { begun, release };
      } catch (error) {
        release();
        if (error instanceof FrozenError) await tellOfRefusal(this.#context, creation, { error, caller });
        if (error instanceof PendingEntriesError || error instanceof LimitsChangedError) continue;
        await noteRefusal(this.#context, creation, { error, caller, waitedMs: 0 });
        throw error;
      }
    }
    throw new UnavailableError('The stack changes too quickly; please retry', { retryAfterSeconds: 1 });
  }

  async #readState(ref: StackRef): Promise<HeldState | null> {
    const { bufferedBodyBytes, states } = this.#context;
    const head = await states.readHead(ref);
    if (!head) throw stackNotFound(ref);
    const { bytes, checkpointId, sizeBytes } = head.state;
    if (sizeBytes > maxStateBytes || !bufferedBodyBytes.tryGrow(0, sizeBytes, ref.organization)) {
      await bytes[Symbol.asyncIterator]().return?.();
      return null;
    }
    try {
      const chunks: Buffer[] = [];
      for await (const chunk of bytes) chunks.push(chunk);
      return { bytes: Buffer.concat(chunks, sizeBytes), checkpointId };
    } catch (error) {
      bufferedBodyBytes.release(sizeBytes, ref.organization);
      throw error;
    }
  }
}

/** Another update began and ended in the meantime; the head that this one would start from lacks its journal. */
class PendingEntriesError extends Error {}

async function assertNothingPending(tx: Queryable, { exclusive, stackId }: PreparedCreation): Promise<void> {
  if (exclusive && (await createUpdateRepository(tx).findWithPendingEntries(stackId))) throw new PendingEntriesError();
}
