import type { AuditSource } from '../audit/audit-event.ts';
import { createAuditRepository } from '../audit/audit-repository.ts';
import { PayloadMissingError } from '../platform/payloads/payload-store.ts';
import { formatStackRef } from '../stacks/names.ts';
import type { AdmittedChange, AdmittedChanges } from '../updates/admitted-changes.ts';
import { type BodyEncoding, type ByteSource, inflate } from './checkpoints/byte-source.ts';
import type { DocumentStore } from './checkpoints/document-store.ts';
import { storeDeployment } from './store-deployment.ts';
import { recordVersion } from './versions/record-version.ts';

/** Idempotent: running the same import twice commits it once. */
export interface DeploymentImport extends AdmittedChange {
  readonly requestedBy: string | null;
  readonly source?: AuditSource | undefined;
  readonly body: ByteSource;
  readonly encoding: BodyEncoding;
}

/** Stores deployment documents, sent by `pulumi stack import` and similar commands, as new stack versions. */
export class DeploymentImporter {
  readonly #changes: AdmittedChanges;
  readonly #documents: DocumentStore;
  readonly #maxBytes: number;

  constructor(parts: { changes: AdmittedChanges; documents: DocumentStore; maxBodyBytes: number }) {
    this.#changes = parts.changes;
    this.#documents = parts.documents;
    this.#maxBytes = parts.maxBodyBytes;
  }

  /**
   * Resolves once the deployment is committed as a new version, on top of the head that it was admitted against. Throws
   * InvalidRequestError, PayloadTooLargeError and the errors of AdmittedChanges.commit; nothing is changed then.
   */
  async import(request: DeploymentImport): Promise<void> {
    if (await this.#changes.isCommitted(request)) return;
    const source: ByteSource = () => inflate(request.body, request.encoding, this.#maxBytes);
    const state = await storeDeployment(this.#documents, source).catch(async (error: unknown) => {
      // The body was dropped while it was being read, because the import was abandoned or another run of it has finished.
      if (error instanceof PayloadMissingError && (await this.#changes.isCommitted(request))) return null;
      throw error;
    });
    if (!state) return;
    await this.#changes.commit(request, async (tx, stack) => {
      const { updateId, requestedBy, source } = request;
      const version = { updateId, kind: 'import', message: '', requestedBy, state } as const;
      const stackVersion = await recordVersion(tx, stack, version);
      if (!source) return;
      const details = { stackId: stack.id, stackVersion, resources: state.resourceCount };
      const event = { organization: stack.organization, object: formatStackRef(stack), updateId, details };
      await createAuditRepository(tx).insert(source, { action: 'stack.import', ...event });
    });
  }
}
