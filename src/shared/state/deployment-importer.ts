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

/** The fields of a job that makes a new version. */
export const editTarget = {
  stackId: Type.String(),
  /** Chosen before the job is queued, so that a second run finds what the first one committed. */
  updateId: Type.String(),
  /** Null for a token that belongs to no user. */
  requestedBy: Nullable(Type.String()),
  /** See StateEdit. */
  tokenId: Type.String(),
  /** For the audit log. */
  source: AuditSource,
  admission: Admission,
};
type ImportJob = Static<TObject<typeof editTarget>>;

/** An import before its body has arrived: the head that it may replace, without a deadline. */
export interface ImportInput extends Omit<ImportJob, 'admission'> {
  readonly head: StackHead;
}

interface Services {
  readonly stateEdits: StateEdits;
  readonly importer: DeploymentImporter;
}

/** Imports a deployment document as a new version of a stack. */
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

/** Idempotent: running the same import twice commits it once. */
export interface DeploymentImport extends StateEdit {
  readonly requestedBy: string | null;
  readonly source?: AuditSource | undefined;
  readonly body: ByteSource;
  readonly encoding: BodyEncoding;
}

/** Stores deployment documents, sent by `pulumi stack import` and similar commands, as new stack versions. */
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
   * Resolves once the deployment is committed as a new version, on top of the head that it was admitted against. Throws
   * InvalidRequestError, PayloadTooLargeError and the errors of StateEdits.commit; nothing is changed then.
   */
  async import(request: DeploymentImport): Promise<void> {
    if (await this.#stateEdits.isCommitted(request)) return;
    const source: ByteSource = () => inflate(request.body, request.encoding, this.#maxBytes);
    const state = await storeDeployment(this.#documents, source).catch(async (error: unknown) => {
      // The body was dropped while it was being read, because the import was abandoned or another run of it has finished.
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
