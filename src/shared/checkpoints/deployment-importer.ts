import type { Database } from '../platform/db/database.ts';
import { ConflictError, NotFoundError, UnavailableError } from '../platform/errors/errors.ts';
import { createStackRepository } from '../stacks/stack-repository.ts';
import { settleStack } from '../updates/update-closer.ts';
import { createUpdateRepository, type UpdateRepository } from '../updates/update-repository.ts';
import { type BodyEncoding, type ByteSource, inflate } from './byte-source.ts';
import { createCheckpointRepository } from './checkpoint-repository.ts';
import { cutOut } from './checkpoint-writer.ts';
import { assertDeploymentVersion, DeploymentScanner } from './deployment-scan.ts';
import type { DocumentStore } from './document-store.ts';

export interface DeploymentImport {
  readonly stackId: string;
  /** Chosen by the caller: the same import run twice commits once. */
  readonly updateId: string;
  readonly requestedBy: string;
  readonly body: ByteSource;
  readonly encoding: BodyEncoding;
}

/** Another update holds the stack. */
export class StackBusyError extends ConflictError {
  override readonly name = 'StackBusyError';
  override readonly code = 'stack-busy';
  constructor() {
    super('Another update is currently in progress');
  }
}

/** Stores deployment documents sent by `pulumi stack import` and its kin as new stack versions. */
export class DeploymentImporter {
  readonly #db: Database;
  readonly #updates: UpdateRepository;
  readonly #documents: DocumentStore;
  readonly #fold: (updateId: string) => Promise<void>;
  readonly #maxBytes: number;
  readonly #leaseSeconds: number;

  constructor(parts: {
    db: Database;
    updates: UpdateRepository;
    documents: DocumentStore;
    fold: (updateId: string) => Promise<void>;
    maxBodyBytes: number;
    leaseSeconds: number;
  }) {
    this.#db = parts.db;
    this.#updates = parts.updates;
    this.#documents = parts.documents;
    this.#fold = parts.fold;
    this.#maxBytes = parts.maxBodyBytes;
    this.#leaseSeconds = parts.leaseSeconds;
  }

  /**
   * Resolves once the deployment is the stack's newest version. Throws InvalidRequestError, PayloadTooLargeError and
   * StackBusyError, which change nothing.
   */
  async import(request: DeploymentImport): Promise<void> {
    if (await this.#updates.find(request.updateId)) return;
    const inflated: ByteSource = () => inflate(request.body, request.encoding, this.#maxBytes);
    const scanner = new DeploymentScanner({ nested: null });
    for await (const chunk of inflated()) scanner.write(chunk);
    const scan = scanner.end();
    assertDeploymentVersion(scan.document.get('version')?.text);
    const document = await this.#documents.save(cutOut(inflated, [scan.root]));
    await settleStack(this.#db, request.stackId, this.#leaseSeconds, this.#fold);
    await this.#db.inTransaction(async (tx) => {
      const stacks = createStackRepository(tx);
      const stack = await stacks.lockById(request.stackId);
      if (!stack) throw new NotFoundError('The stack was deleted meanwhile');
      if (stack.activeUpdateId !== null) throw new StackBusyError();
      const updates = createUpdateRepository(tx);
      if (await updates.findWithTail(stack.id)) {
        throw new UnavailableError(
          'The state of an interrupted update is still being put together; please repeat the call',
          { retryAfterSeconds: 1 },
        );
      }
      const stackVersion = stack.stackVersion + 1;
      await updates.insertEnded({
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
        { document, resourceCount: scan.resourceCount },
      );
      if (checkpointId === null)
        throw new UnavailableError('The stored document was swept away; please repeat the call');
      await stacks.setHead(stack.id, checkpointId);
      await stacks.publishVersion(stack.id, stackVersion);
    });
  }
}
