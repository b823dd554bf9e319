import { randomUUID } from 'node:crypto';
import { type ByteSource, cutOut } from '../../shared/platform/bytes/byte-source.ts';
import { InvalidRequestError } from '../../shared/platform/errors/errors.ts';
import { inSlices } from '../../shared/platform/slices/slices.ts';
import { formatStackRef, type StackRef } from '../../shared/stacks/names.ts';
import { stackNotFound } from '../../shared/stacks/stack-errors.ts';
import type { StackRow } from '../../shared/stacks/stack-repository.ts';
import type { NewCheckpoint } from '../../shared/state/checkpoints/checkpoint-repository.ts';
import { copyVersion } from '../../shared/state/copy-version.ts';
import { StackChangedError, type StackHead } from '../../shared/state/edits/state-edits.ts';
import type { Reclaim } from '../../shared/state/reclaim-stack.ts';
import { recordEdit } from '../../shared/state/record-edit.ts';
import type { StateScan } from '../platform/admission/state-scans.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import type { Caller } from '../platform/http/request.ts';
import { type PendingStep, repairPendingSteps, type StepRepair } from './resources/pending-operations.ts';

/** `headVersion`: the newest version that the author has seen. */
export interface Editor {
  readonly caller: Caller;
  readonly audit: AuditTrail;
  readonly headVersion: number;
  readonly scan: StateScan;
}

/** `index`: the operation's position in the newest version. */
export interface ChosenRepair {
  readonly index: number;
  readonly urn: string;
  readonly repair: StepRepair;
}

/** A new state before it is committed. */
interface Change {
  readonly state: NewCheckpoint;
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
}

/** Each change creates a new version, recorded as an import, and changes nothing else. */
export class ManualEdits {
  readonly #context: ApiContext;
  readonly #reclaim: Reclaim;

  constructor(context: ApiContext, reclaim: Reclaim) {
    this.#context = context;
    this.#reclaim = reclaim;
  }

  /**
   * Stores the state of an earlier version as a new version, and returns its number. Throws NotFoundError, ForbiddenError, StackBusyError,
   * StackChangedError if the caller has not seen the newest version, FrozenError, JournalFaultError and QuotaReachedError; nothing is
   * changed if it throws.
   */
  restore(ref: StackRef, stackVersion: number, editor: Editor): Promise<number> {
    return this.#change(ref, editor, async (stack) => ({
      state: await copyVersion({ ...this.#context, states: editor.scan }, stack, stackVersion),
      message: `Restored version ${stackVersion}`,
      details: { version: stackVersion },
    }));
  }

  /**
   * Clears pending operations of the newest state, or adds the created resources by id; the next refresh reads these. Returns the new
   * version. Throws the errors of `restore`, and InvalidRequestError if an operation does not exist.
   */
  repair(ref: StackRef, chosen: readonly ChosenRepair[], editor: Editor): Promise<number> {
    return this.#change(ref, editor, async (_stack, head) => {
      const { checkpoints, documents, documentReader } = this.#context;
      const checkpoint = head.checkpointId === null ? null : await checkpoints.find(head.checkpointId);
      if (!checkpoint) throw head.checkpointId === null ? noSuchOperation() : new StackChangedError();
      const source: ByteSource = () => inSlices(documentReader.open(checkpoint));
      const left = new Map(chosen.map((each) => [each.index, each]));
      const cleared: string[] = [];
      const imported: string[] = [];
      const repaired = await repairPendingSteps(source, ({ urn }: PendingStep, index) => {
        const each = left.get(index);
        if (each === undefined) return null;
        if (each.urn !== urn) throw noSuchOperation();
        left.delete(index);
        (each.repair.action === 'clear' ? cleared : imported).push(urn);
        return each.repair;
      });
      if (left.size > 0) throw noSuchOperation();
      const document = await documents.save(cutOut(source, repaired.parts));
      return {
        state: { document, resourceCount: checkpoint.resourceCount + repaired.imported },
        message: describeRepair(cleared.length, imported.length),
        details: { cleared: cleared.slice(0, maxNames), imported: imported.slice(0, maxNames) },
      };
    });
  }

  async #change(
    ref: StackRef,
    { audit, caller, headVersion, scan }: Editor,
    prepare: (stack: StackRow, head: StackHead) => Promise<Change>,
  ): Promise<number> {
    const { stateEdits, quotas, stacks } = this.#context;
    const stack = await stacks.find(ref);
    if (!stack) throw stackNotFound(ref);
    await quotas.assertMayKeepMore(ref.organization);
    await scan.begin();
    await this.#reclaim(stack.id, { organization: ref.organization, waitsForLock: true });
    const head = await stateEdits.findHead(stack.id);
    if (head.stackVersion !== headVersion) throw new StackChangedError();
    const { details, message, state } = await prepare(stack, head);
    const updateId = randomUUID();
    const admission = await stateEdits.admit(head);
    let newVersion = head.stackVersion + 1;
    try {
      const edit = { stackId: stack.id, updateId, admission, tokenId: caller.tokenId };
      await stateEdits.commit(edit, async (tx, locked) => {
        // The stack was renamed, and the state contains former names.
        if (formatStackRef(locked) !== formatStackRef(stack)) throw new StackChangedError();
        const version = { updateId, kind: 'import', message, requestedBy: caller.userId, state } as const;
        newVersion = await recordEdit(tx, locked, version);
        await audit.record(tx, {
          organization: locked.organization,
          object: formatStackRef(locked),
          updateId,
          details: { stackId: locked.id, ...details, newVersion },
        });
      });
    } catch (error) {
      await stateEdits.resolveFailure(updateId, error);
    }
    return newVersion;
  }
}

/** URNs in one event of the audit log. */
const maxNames = 50;

function noSuchOperation(): InvalidRequestError {
  return new InvalidRequestError('The newest state does not have this pending operation');
}

function describeRepair(cleared: number, imported: number): string {
  const parts = [
    ...(cleared === 0 ? [] : [`cleared ${cleared} pending ${cleared === 1 ? 'operation' : 'operations'}`]),
    ...(imported === 0 ? [] : [`added ${imported} by ${imported === 1 ? 'its id' : 'their ids'}`]),
  ];
  const text = parts.join(', ');
  return text.charAt(0).toUpperCase() + text.slice(1);
}
