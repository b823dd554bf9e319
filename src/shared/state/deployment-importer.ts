import { type Static, type TObject, Type } from 'typebox';
import { AuditSource } from '../audit/audit-event.ts';
import { createAuditRepository } from '../audit/audit-repository.ts';
import type { ByteSource } from '../platform/bytes/byte-source.ts';
import type { WriteBody } from '../platform/payloads/body-buffer.ts';
import { type BodyEncoding, inflate } from '../platform/payloads/inflate.ts';
import { PayloadMissingError } from '../platform/payloads/payload-store.ts';
import { Nullable } from '../platform/schema/standard-schema.ts';
import { formatStackRef } from '../stacks/names.ts';
import type { DocumentStore } from './checkpoints/document-store.ts';
import { storeDeployment } from './checkpoints/save-document.ts';
import { Admission, type StackHead, type StateEdit, type StateEdits } from './edits/state-edits.ts';
import { recordEdit } from './record-edit.ts';

export const editTarget = {
  stackId: Type.String(),
  /** Chosen before the job is queued, so that a second run finds the result of the first. */
  updateId: Type.String(),
  /** Null for a token without a user. */
  requestedBy: Nullable(Type.String()),
  /** See StateEdit. */
  tokenId: Type.String(),
  /** For the audit log. */
  source: AuditSource,
  admission: Admission,
};
type ImportJob = Static<TObject<typeof editTarget>>;

/** The body has not arrived yet, so there is no deadline. `head` is the one that the import may replace. */
export interface ImportInput extends Omit<ImportJob, 'admission'> {
  readonly head: StackHead;
}

interface Services {
  readonly stateEdits: StateEdits;
  readonly importer: DeploymentImporter;
}

export const importDeployment = {
  name: 'import-deployment',
  schemas: [1],
  fields: editTarget,
  label: () => 'import',
  budget: 'imports',
  onlyWhileAwaited: () => true,
  fieldsOf: async ({ stateEdits }: Services, { head, ...target }: ImportInput) => ({
    ...target,
    admission: await stateEdits.admit(head),
  }),
  run: async ({ importer }: Services, job: ImportJob, body: WriteBody) =>
    importer.import({ ...job, ...(await body.open()) }),
  resolveFailure: ({ stateEdits }: Services, { updateId }: ImportJob, error: unknown) =>
    stateEdits.resolveFailure(updateId, error),
} as const;

/** Idempotent: a second run of the same import commits nothing. */
export interface DeploymentImport extends StateEdit {
  readonly requestedBy: string | null;
  readonly source?: AuditSource | undefined;
  readonly body: ByteSource;
  readonly encoding: BodyEncoding;
}

/** For `pulumi stack import` and similar commands. */
export class DeploymentImporter {
  readonly #stateEdits: StateEdits;
  readonly #documents: DocumentStore;
  readonly #maxBytes: number;

  constructor(parts: { stateEdits: StateEdits; documents: DocumentStore; maxBodyBytes: number }) {
    this.#stateEdits = parts.stateEdits;
    this.#documents = parts.documents;
    this.#maxBytes = parts.maxBodyBytes;
  }

  /**
   * Resolves once the new version is committed on the head against which it was admitted. Throws InvalidRequestError, PayloadTooLargeError
   * and the errors of StateEdits.commit, without a change.
   */
  async import(request: DeploymentImport): Promise<void> {
    if (await this.#stateEdits.isCommitted(request)) return;
    const source: ByteSource = () => inflate(request.body, request.encoding, this.#maxBytes);
    const state = await storeDeployment(this.#documents, source).catch(async (error: unknown) => {
      // The body was dropped while it was read: the import was abandoned, or another run of it has finished.
      if (error instanceof PayloadMissingError && (await this.#stateEdits.isCommitted(request))) return null;
      throw error;
    });
    if (!state) return;
    await this.#stateEdits.commit(request, async (tx, stack) => {
      const { updateId, requestedBy, source } = request;
      const version = { updateId, kind: 'import', message: '', requestedBy, state } as const;
      const stackVersion = await recordEdit(tx, stack, version);
      if (!source) return;
      const details = { stackId: stack.id, stackVersion, resources: state.resourceCount };
      const event = { organization: stack.organization, object: formatStackRef(stack), updateId, details };
      await createAuditRepository(tx).insert(source, { action: 'stack.import', ...event });
    });
  }
}
