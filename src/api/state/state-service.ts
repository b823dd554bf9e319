import { randomUUID } from 'node:crypto';
import { bytesOf } from '../../shared/platform/bytes/byte-source.ts';
import { NotFoundError } from '../../shared/platform/errors/errors.ts';
import { formatStackRef, type StackRef } from '../../shared/stacks/names.ts';
import { describeQuarantine } from '../../shared/stacks/quarantine.ts';
import { describeUnfinishedImport, stackNotFound } from '../../shared/stacks/stack-errors.ts';
import { readTags } from '../../shared/stacks/tags.ts';
import type { ImportInput } from '../../shared/state/deployment-importer.ts';
import type { Reclaim } from '../../shared/state/reclaim-stack.ts';
import { type AdmitBlob, type StateDocument, StateReader } from '../../shared/state/state-reader.ts';
import type { StateScan } from '../platform/admission/state-scans.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import type { Caller } from '../platform/http/request.ts';
import { type AdmitOutputs, exportOutputs } from './outputs-export.ts';

/** Outputs that a warning or an event names. */
const maxNames = 20;

/** Reads states of stacks and prepares imports. */
export class StateService {
  readonly #context: ApiContext;
  readonly #exported: StateReader;
  readonly #reclaim: Reclaim;

  constructor(context: ApiContext, reclaim: Reclaim) {
    this.#context = context;
    this.#exported = new StateReader({ ...context, compactLarge: context.awaitCompaction, replica: context.replica });
    this.#reclaim = reclaim;
  }

  /** Throws the errors of `admit`. */
  async readHead(ref: StackRef, audit: AuditTrail, admit: AdmitBlob): Promise<StateDocument> {
    const head = await this.#exported.readHead(ref, admit);
    if (!head) throw stackNotFound(ref);
    const { stack, state } = head;
    const notes = [state.warning, describeUnfinishedImport(stack), describeQuarantine(readTags(stack.tags))];
    return this.#recorded(
      ref,
      { ...state, warning: notes.filter((each) => each !== null).join(' ') || null },
      audit,
      'newest',
    );
  }

  /**
   * The state for callers who may read only the outputs: the root resource with its outputs, and `withSecrets` also its secret outputs.
   * Throws InvalidRequestError, and the errors of `scan` and `admit`, before the read is recorded.
   */
  async readOutputs(
    scan: StateScan,
    ref: StackRef,
    {
      admit,
      audit,
      withSecrets,
    }: { readonly withSecrets: boolean; readonly audit: AuditTrail; readonly admit: AdmitOutputs },
  ): Promise<StateDocument> {
    const { cipher } = this.#context;
    const head = await scan.readHead(ref);
    if (!head) throw stackNotFound(ref);
    const decrypt = async (ciphertext: Buffer): Promise<Buffer> =>
      (await cipher.decrypt([head.stack.id], [ciphertext]))[0] as Buffer;
    const outputs = await exportOutputs(head.state.bytes, { admit, decrypt: withSecrets ? decrypt : null });
    const { document, leftOut, resourceCount, secret } = outputs;
    const warnings = [
      ...(head.state.warning === null
        ? []
        : ['The state of the stack is incomplete, and its outputs may be incomplete as well.']),
      ...(leftOut.length === 0 ? [] : [describeLeftOut(leftOut, withSecrets)]),
    ];
    const details = { stackVersion: 'newest', outputsOnly: true, secrets: secret.slice(0, maxNames) };
    await audit.recordRead(this.#context.db, {
      organization: ref.organization,
      object: formatStackRef(ref),
      details,
    });
    return {
      sizeBytes: document.length,
      storedBytes: null,
      bytes: bytesOf(document)(),
      resourceCount,
      checkpointId: null,
      warning: warnings.join(' ') || null,
    };
  }

  /** `version`: text of a path. Throws the errors of `admit`. */
  async readVersion(ref: StackRef, version: string, audit: AuditTrail, admit: AdmitBlob): Promise<StateDocument> {
    const stack = await this.#context.stacks.find(ref);
    if (!stack) throw stackNotFound(ref);
    const number = /^[1-9]\d{0,8}$/.test(version) ? Number(version) : 0;
    const state = number > 0 ? await this.#exported.readVersion(stack.id, number, ref.organization, admit) : null;
    if (!state) throw new NotFoundError(`The stack has no version ${JSON.stringify(version.slice(0, 20))}`);
    return this.#recorded(ref, state, audit, number);
  }

  /** Changes committed after this call are newer than the import. Throws StackBusyError, QuotaReachedError and JournalFaultError. */
  async beginImport(ref: StackRef, caller: Caller, audit: AuditTrail): Promise<ImportInput> {
    const { stateEdits, quotas, stacks } = this.#context;
    const stack = await stacks.find(ref);
    if (!stack) throw stackNotFound(ref);
    await quotas.assertMayKeepMore(ref.organization);
    await this.#reclaim(stack.id, { organization: ref.organization, waitsForLock: true });
    const head = await stateEdits.findHead(stack.id);
    const { tokenId, userId: requestedBy } = caller;
    return { stackId: stack.id, updateId: randomUUID(), requestedBy, tokenId, source: audit.source, head };
  }

  /** Returns the state once the read is recorded. Throws UnavailableError. */
  async #recorded(
    ref: StackRef,
    state: StateDocument,
    audit: AuditTrail,
    stackVersion: number | 'newest',
  ): Promise<StateDocument> {
    try {
      const details = { stackVersion };
      await audit.recordRead(this.#context.db, {
        organization: ref.organization,
        object: formatStackRef(ref),
        details,
      });
      return state;
    } catch (error) {
      await state.bytes[Symbol.asyncIterator]().return?.();
      throw error;
    }
  }
}

function describeLeftOut(names: readonly string[], withSecrets: boolean): string {
  const shown = `${names.slice(0, maxNames).join(', ')}${names.length > maxNames ? ', …' : ''}`;
  const reason = withSecrets ? 'they cannot be decrypted' : 'reading them needs the permission decrypt';
  return `These secret outputs were left out, because ${reason}: ${shown}`;
}
