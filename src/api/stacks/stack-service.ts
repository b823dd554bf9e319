import { createCheckpointRepository } from '../../shared/checkpoints/checkpoint-repository.ts';
import { bytesOf } from '../../shared/documents/byte-source.ts';
import { createIdentityRepository, type IdentityRepository } from '../../shared/identity/identity-repository.ts';
import { type Role, roleIncludes } from '../../shared/identity/roles.ts';
import { assertNoFault, type JournalFault } from '../../shared/journal/journal-fault.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { violatedConstraint } from '../../shared/platform/db/sqlstate.ts';
import { textInPieces } from '../../shared/platform/db/text-pieces.ts';
import { ForbiddenError, InvalidRequestError, NotFoundError } from '../../shared/platform/errors/errors.ts';
import { assertFieldSize } from '../../shared/platform/errors/field-size.ts';
import { assertStackRef, formatStackRef, parseQualifiedName, type StackRef } from '../../shared/stacks/names.ts';
import { stackExists, stackNotFound } from '../../shared/stacks/stack-errors.ts';
import { createStackRepository, type StackListRow, type StackRow } from '../../shared/stacks/stack-repository.ts';
import type { Tags } from '../../shared/stacks/tags.ts';
import { reclaimStack } from '../../shared/states/reclaim-stack.ts';
import { assertNothingPending, recordInitialState } from '../../shared/states/record-version.ts';
import { storeDeployment } from '../../shared/states/store-deployment.ts';
import { StackBusyError } from '../../shared/updates/admitted-changes.ts';
import { createUpdateRepository } from '../../shared/updates/update-repository.ts';
import type { ApiContext } from '../api-context.ts';
import type { Caller } from '../request.ts';
import type { UpdateService } from '../updates/update-service.ts';

export interface NewStack {
  readonly ref: StackRef;
  readonly tags: Tags;
  /** The deployment document to begin with, or null. */
  readonly state: Buffer | null;
  readonly remoteConfig: object | null;
}

export interface StackListQuery {
  readonly organization: string | null;
  readonly project: string | null;
  readonly tagName: string | null;
  readonly tagValue: string | null;
  readonly continuationToken: string | null;
}

const pageSize = 200;
const pageBytes = 1024 * 1024;

/** Stacks as resources: create, find, list, tag, delete. */
export class StackService {
  readonly #context: ApiContext;
  readonly #settle: UpdateService['settle'];

  constructor(context: ApiContext, settle: UpdateService['settle']) {
    this.#context = context;
    this.#settle = settle;
  }

  /**
   * Creates the stack, and organization and project when they do not exist; who makes an organization becomes its admin.
   * Throws ConflictError when the stack exists, ForbiddenError below the role member, NotFoundError for strangers who may not
   * make organizations, whether this one exists or not, and QuotaReachedError.
   */
  async create(caller: Caller, stack: NewStack): Promise<StackRow> {
    const { documents } = this.#context;
    const { ref } = stack;
    assertStackRef(ref);
    await this.#admitCreation(caller, ref.organization);
    const { quotas } = this.#context;
    await quotas.assertMayKeepMore(ref.organization);
    const limits = await quotas.limitsOf(ref.organization);
    const remoteConfig = stack.remoteConfig && this.#remoteConfig(stack.remoteConfig);
    const state = stack.state && (await storeDeployment(documents, bytesOf(stack.state)));
    try {
      return await this.#context.db.inTransaction(async (tx) => {
        const identity = createIdentityRepository(tx);
        const stacks = createStackRepository(tx);
        const organization = await identity.ensureOrganization(ref.organization);
        if (organization.created) await identity.setMembership(organization.id, caller.userId, 'admin');
        else if (caller.role === null) await admitLatecomer(identity, caller, ref.organization);
        await quotas.assertMayAddStack(tx, { id: organization.id, name: ref.organization }, limits);
        const projectId = await stacks.ensureProject(organization.id, ref.project);
        const id = await stacks.insert({
          projectId,
          name: ref.stack,
          tags: JSON.stringify(stack.tags),
          remoteConfig,
        });
        if (state) await recordInitialState(tx, id, state);
        const created = await stacks.lockById(id);
        if (!created) throw stackNotFound(ref);
        return created;
      });
    } catch (error) {
      throw violatedConstraint(error) === 'stacks_name_key' ? stackExists(ref) : error;
    }
  }

  async get(ref: StackRef): Promise<StackRow> {
    const stack = await this.#context.stacks.find(ref);
    if (!stack) throw stackNotFound(ref);
    return stack;
  }

  projectExists(organization: string, project: string): Promise<boolean> {
    return this.#context.stacks.projectExists(organization, project);
  }

  /** Whether there is such a stack, and an update holds it. */
  async isBusy(ref: StackRef): Promise<boolean> {
    const stack = await this.#context.stacks.find(ref);
    return stack !== null && stack.activeUpdateId !== null;
  }

  /** What is wrong with the states of the stack. */
  findFaults(stackId: string): Promise<readonly JournalFault[]> {
    return this.#context.compactions.findFaults(stackId);
  }

  /** The update that holds the stack; null when none does. */
  async findCurrentOperation({ id, activeUpdateId }: StackRow) {
    return activeUpdateId === null ? null : this.#context.stacks.findCurrentOperation(id);
  }

  /** The remote configuration as JSON, read piece by piece. */
  remoteConfigJson(stackId: string): AsyncGenerator<string> {
    return textInPieces((from, chars) => this.#context.stacks.readRemoteConfig(stackId, from, chars));
  }

  /** One page of the stacks in organizations of the caller; `continuationToken` is null on the last. */
  async list(
    caller: Caller,
    query: StackListQuery,
  ): Promise<{ stacks: readonly StackListRow[]; continuationToken: string | null }> {
    const after = query.continuationToken === null ? null : decodeContinuation(query.continuationToken);
    const rows = await this.#context.stacks.list({
      ...query,
      userId: caller.userId,
      after,
      limit: pageSize + 1,
      maxBytes: pageBytes,
    });
    const page = rows.slice(0, pageSize);
    const last = page.at(-1);
    return {
      stacks: page,
      continuationToken:
        last && last.found > page.length ? Buffer.from(formatStackRef(last)).toString('base64url') : null,
    };
  }

  async replaceTags(ref: StackRef, tags: Tags): Promise<void> {
    const stack = await this.get(ref);
    await this.#context.stacks.setTags(stack.id, JSON.stringify(tags));
  }

  async setRemoteConfig(ref: StackRef, config: object): Promise<void> {
    const text = this.#remoteConfig(config);
    const stack = await this.get(ref);
    await this.#context.stacks.setRemoteConfig(stack.id, text);
  }

  /**
   * Deletes the stack: it is gone for every caller, and its name is free, when this resolves. What belongs to it is deleted by
   * a sweep. With `keepResources`, refuses while its state has resources, in the very words that the CLI looks for
   * (pkg/backend/httpstate/client/client.go), and while its state is incomplete. Throws StackBusyError and JournalFaultError.
   */
  async delete(ref: StackRef, options: { keepResources: boolean }): Promise<void> {
    const found = await this.get(ref);
    const { config, db } = this.#context;
    if (options.keepResources) await this.#settle(found.id);
    // A state that cannot be put together must not keep its stack from being deleted: nobody looks at it.
    else await reclaimStack(db, found.id, config.leaseSeconds, async () => {}, { admitsFault: true });
    await db.inTransaction(async (tx) => {
      const stacks = createStackRepository(tx);
      const stack = await stacks.lockById(found.id);
      if (!stack) throw stackNotFound(ref);
      if (stack.activeUpdateId !== null) throw new StackBusyError();
      if (options.keepResources) {
        await assertNoFault(tx, stack.id);
        await assertEmpty(tx, stack);
      }
      await createUpdateRepository(tx).cancelAll(stack.id);
      await stacks.markDeleted(stack.id);
    });
  }

  #remoteConfig(config: object): string {
    const text = JSON.stringify(config);
    assertFieldSize('The remote configuration', text, this.#context.config.limits.maxFieldBytes);
    return text;
  }

  async #admitCreation(caller: Caller, organization: string): Promise<void> {
    const { config, identity } = this.#context;
    if (caller.role !== null) return assertRole(caller.role, organization);
    // Without a look whether it exists: that is not for strangers to know.
    if (config.organizationCreation === 'site-admin' && !caller.siteAdmin) {
      throw organizationNotFound(organization, '; only site admins create organizations here');
    }
    if (await identity.findOrganization(organization)) await admitLatecomer(identity, caller, organization);
  }
}

/** Throws when the locked stack has resources, or it cannot be told yet. */
async function assertEmpty(tx: Queryable, stack: StackRow): Promise<void> {
  await assertNothingPending(tx, stack.id);
  const head = stack.checkpointId === null ? null : await createCheckpointRepository(tx).find(stack.checkpointId);
  if (head && head.resourceCount > 0) throw new InvalidRequestError('Bad Request: Stack still contains resources.');
}

function assertRole(role: Role, organization: string): void {
  if (!roleIncludes(role, 'member')) {
    throw new ForbiddenError(`This needs the role member in organization ${organization}; you are ${role}`);
  }
}

/** The organization was made since the caller was let in, perhaps by a call of their own. */
async function admitLatecomer(identity: IdentityRepository, caller: Caller, organization: string): Promise<void> {
  const memberships = await identity.listMemberships(caller.userId);
  const own = memberships.find(({ name }) => name === organization);
  if (!own) throw organizationNotFound(organization);
  assertRole(own.role, organization);
}

function organizationNotFound(organization: string, hint = ''): NotFoundError {
  return new NotFoundError(`Organization '${organization}' not found, or you are not a member of it${hint}`);
}

function decodeContinuation(token: string): StackRef {
  const ref = parseQualifiedName(Buffer.from(token, 'base64url').toString('utf8'));
  if (!ref) throw new InvalidRequestError('The continuationToken is not valid');
  return ref;
}
