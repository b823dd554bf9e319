import { randomUUID } from 'node:crypto';
import { bytesOf } from '../../shared/checkpoints/byte-source.ts';
import { createCheckpointRepository } from '../../shared/checkpoints/checkpoint-repository.ts';
import { StackBusyError } from '../../shared/checkpoints/deployment-importer.ts';
import { violatedConstraint } from '../../shared/platform/db/sqlstate.ts';
import { InvalidRequestError, UnavailableError } from '../../shared/platform/errors/errors.ts';
import { formatStackRef, isSegmentName, parseQualifiedName, type StackRef } from '../../shared/stacks/names.ts';
import { renameDeployment } from '../../shared/stacks/rename-deployment.ts';
import { createStackRepository, type StackRow } from '../../shared/stacks/stack-repository.ts';
import { readTags } from '../../shared/stacks/tags.ts';
import { createUpdateRepository } from '../../shared/updates/update-repository.ts';
import type { ApiContext } from '../api-context.ts';
import type { Caller } from '../request.ts';
import { stackExists, stackNotFound } from './stack-errors.ts';

const attempts = 3;

/**
 * The target of a rename in either form: the contract's `org/project/stack`, or the CLI's plain names. Throws
 * InvalidRequestError for names that are not valid or lead to another organization.
 */
export function renameTarget(
  from: StackRef,
  request: { newName?: string | null; newProject?: string | null },
): StackRef {
  const name = request.newName || from.stack;
  const target = name.includes('/')
    ? parseQualifiedName(name)
    : { organization: from.organization, project: request.newProject || from.project, stack: name };
  if (!target || !isSegmentName(target.project) || !isSegmentName(target.stack)) {
    throw new InvalidRequestError(
      `${JSON.stringify(name.slice(0, 300))} is not a valid stack name, nor of the form organization/project/stack`,
    );
  }
  if (target.organization !== from.organization) {
    throw new InvalidRequestError('A stack can only be renamed within its organization');
  }
  if (!request.newName && !request.newProject) throw new InvalidRequestError('newName or newProject must be given');
  return target;
}

/**
 * Renames a stack: its place, and every mention of it in its newest state (URNs, root resource, secrets provider), since the
 * CLI does no more than ask for it. Recorded as an update of kind rename, which owns a stack version.
 */
export class StackRenaming {
  readonly #context: ApiContext;
  readonly #settle: (stackId: string) => Promise<void>;

  constructor(context: ApiContext, settle: (stackId: string) => Promise<void>) {
    this.#context = context;
    this.#settle = settle;
  }

  /** Throws NotFoundError, ConflictError (target exists), StackBusyError; they change nothing. */
  async rename(from: StackRef, to: StackRef, caller: Caller): Promise<void> {
    for (let attempt = 1; attempt <= attempts; attempt++) {
      const stack = await this.#context.stacks.find(from);
      if (!stack) throw stackNotFound(from);
      if (await this.#context.stacks.find(to)) throw stackExists(to);
      await this.#settle(stack.id);
      if (await this.#tryRename(from, to, caller)) return;
    }
    throw new UnavailableError('The state of the stack keeps changing; please repeat the call', {
      retryAfterSeconds: 1,
    });
  }

  /** False when the state changed between reading and committing. */
  async #tryRename(from: StackRef, to: StackRef, caller: Caller): Promise<boolean> {
    const { db, documents, states } = this.#context;
    const head = await states.readHead(from);
    if (!head) throw stackNotFound(from);
    const pieces: Buffer[] = [];
    for await (const piece of head.state.bytes) pieces.push(piece);
    // What has ended was settled before; the head of a live update changes with every write.
    if (head.stack.activeUpdateId !== null) throw new StackBusyError();
    const { checkpointId, resourceCount } = head.state;
    if (head.stack.checkpointId !== checkpointId) return false;
    const renamed = checkpointId === null ? null : renameDeployment(Buffer.concat(pieces), { from, to });
    const document = renamed ? await documents.save(bytesOf(renamed)) : null;
    try {
      return await db.inTransaction(async (tx) => {
        const stacks = createStackRepository(tx);
        const stack = await stacks.lockById(head.stack.id);
        if (!stack || formatStackRef(stack) !== formatStackRef(from)) throw stackNotFound(from);
        if (stack.activeUpdateId !== null) throw new StackBusyError();
        if (stack.checkpointId !== checkpointId) return false;
        const updateId = randomUUID();
        const stackVersion = stack.stackVersion + 1;
        await createUpdateRepository(tx).insertEnded({
          id: updateId,
          stackId: stack.id,
          kind: 'rename',
          stackVersion,
          message: `Renamed ${formatStackRef(from)} to ${formatStackRef(to)}`,
          environment: '{}',
          requestedBy: caller.userId,
          baseCheckpointId: checkpointId,
        });
        if (document) {
          const id = await createCheckpointRepository(tx).insert(
            { stackId: stack.id, updateId },
            { document, resourceCount },
          );
          if (id === null) throw new UnavailableError('The renamed state was swept away; please repeat the call');
          await stacks.setHead(stack.id, id);
        }
        await stacks.publishVersion(stack.id, stackVersion);
        await stacks.insertFormerName(stack);
        await stacks.rename(stack.id, await stacks.ensureProject(stack.organizationId, to.project), to.stack);
        await this.#renameTag(stack, to, (tags) => stacks.setTags(stack.id, tags));
        return true;
      });
    } catch (error) {
      throw violatedConstraint(error) === 'stacks_name_key' ? stackExists(to) : error;
    }
  }

  async #renameTag(stack: StackRow, to: StackRef, save: (tags: string) => Promise<unknown>): Promise<void> {
    const tags = readTags(stack.tags);
    if (tags['pulumi:project'] === undefined) return;
    tags['pulumi:project'] = to.project;
    await save(JSON.stringify(tags));
  }
}
