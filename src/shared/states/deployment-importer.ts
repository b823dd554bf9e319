import { type BodyEncoding, type ByteSource, inflate } from '../documents/byte-source.ts';
import type { DocumentStore } from '../documents/document-store.ts';
import { PayloadMissingError } from '../platform/payloads/payload-store.ts';
import type { AdmittedChange, AdmittedChanges } from '../updates/admitted-changes.ts';
import { recordVersion } from './record-version.ts';
import { storeDeployment } from './store-deployment.ts';

/** The same import run twice commits once. */
export interface DeploymentImport extends AdmittedChange {
  readonly requestedBy: string;
  readonly body: ByteSource;
  readonly encoding: BodyEncoding;
}

/** Stores deployment documents sent by `pulumi stack import` and its kin as new stack versions. */
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
   * Resolves once the deployment is a version of the stack, over the head that it was admitted against. Throws
   * InvalidRequestError, PayloadTooLargeError and what AdmittedChanges.commit throws, which change nothing.
   */
  async import(request: DeploymentImport): Promise<void> {
    if (await this.#changes.isCommitted(request)) return;
    const source: ByteSource = () => inflate(request.body, request.encoding, this.#maxBytes);
    const state = await storeDeployment(this.#documents, source).catch(async (error: unknown) => {
      // Dropped, under the reader's hands, when the import was given up, or another run of it was done.
      if (error instanceof PayloadMissingError && (await this.#changes.isCommitted(request))) return null;
      throw error;
    });
    if (!state) return;
    await this.#changes.commit(request, async (tx, stack) => {
      const { updateId, requestedBy } = request;
      await recordVersion(tx, stack, { updateId, kind: 'import', message: '', requestedBy, state });
    });
  }
}
