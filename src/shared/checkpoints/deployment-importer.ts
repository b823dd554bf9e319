import { UnavailableError } from '../platform/errors/errors.ts';
import { HandoverMissingError } from '../platform/queue/handover-store.ts';
import { createStackRepository } from '../stacks/stack-repository.ts';
import type { AdmittedChange, AdmittedChanges } from '../updates/admitted-changes.ts';
import { createUpdateRepository } from '../updates/update-repository.ts';
import { type BodyEncoding, type ByteSource, inflate } from './byte-source.ts';
import { createCheckpointRepository, type NewCheckpoint } from './checkpoint-repository.ts';
import { cutOut } from './checkpoint-writer.ts';
import { assertDeploymentVersion, DeploymentScanner } from './deployment-scan.ts';
import type { DocumentStore } from './document-store.ts';

export { StackBusyError } from '../updates/admitted-changes.ts';

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
    const stored = await this.#store(request).catch(async (error: unknown) => {
      // Dropped, under the reader's hands, when the import was given up, or another run of it was done.
      if (error instanceof HandoverMissingError && (await this.#changes.isCommitted(request))) return null;
      throw error;
    });
    if (!stored) return;
    await this.#changes.commit(request, async (tx, stack) => {
      const stacks = createStackRepository(tx);
      const stackVersion = stack.stackVersion + 1;
      await createUpdateRepository(tx).insertEnded({
        id: request.updateId,
        stackId: stack.id,
        kind: 'import',
        stackVersion,
        message: '',
        environment: '{}',
        requestedBy: request.requestedBy,
        baseCheckpointId: stack.checkpointId,
      });
      const checkpointId = await createCheckpointRepository(tx).insert(
        { stackId: stack.id, updateId: request.updateId },
        stored,
      );
      if (checkpointId === null) throw new UnavailableError('The stored document was deleted meanwhile; please retry');
      await stacks.setHead(stack.id, checkpointId);
      await stacks.publishVersion(stack.id, stackVersion);
    });
  }

  async #store({ body, encoding }: DeploymentImport): Promise<NewCheckpoint> {
    const inflated: ByteSource = () => inflate(body, encoding, this.#maxBytes);
    const scanner = new DeploymentScanner({ nested: null });
    for await (const chunk of inflated()) scanner.write(chunk);
    const scan = scanner.end();
    assertDeploymentVersion(scan.document.get('version')?.text);
    return { document: await this.#documents.save(cutOut(inflated, [scan.root])), resourceCount: scan.resourceCount };
  }
}
