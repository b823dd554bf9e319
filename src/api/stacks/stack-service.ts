import { randomUUID } from 'node:crypto';
import { readsAll } from '../../shared/access/access-decision.ts';
import { createGrantRepository } from '../../shared/access/grant-repository.ts';
import { createAuditRepository } from '../../shared/audit/audit-repository.ts';
import { createIdentityRepository, type LockedAccess } from '../../shared/identity/identity-repository.ts';
import { bytesOf } from '../../shared/platform/bytes/byte-source.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { isLockTimeout, violatedConstraint } from '../../shared/platform/db/sqlstate.ts';
import { InvalidRequestError } from '../../shared/platform/errors/errors.ts';
import { assertStackRef, formatStackRef, parseQualifiedName, type StackRef } from '../../shared/stacks/names.ts';
import { createRestorableStackRepository } from '../../shared/stacks/restorable-stack-repository.ts';
import { stackExists, stackNotFound } from '../../shared/stacks/stack-errors.ts';
import {
  createStackListRepository,
  type StackListRepository,
  type StackListRow,
} from '../../shared/stacks/stack-list-repository.ts';
import { createStackRepository, type StackRow } from '../../shared/stacks/stack-repository.ts';
import { readTags, type Tags } from '../../shared/stacks/tags.ts';
import { createCheckpointRepository } from '../../shared/state/checkpoints/checkpoint-repository.ts';
import { storeDeployment } from '../../shared/state/checkpoints/save-document.ts';
import { assertNoFault } from '../../shared/state/journal/journal-fault.ts';
import type { Reclaim } from '../../shared/state/reclaim-stack.ts';
import { reclaimStack } from '../../shared/state/reclaim-stack.ts';
import { assertNothingPending, recordInitialState } from '../../shared/state/record-edit.ts';
import { assertThawed } from '../../shared/updates/rules/freeze.ts';
import { createUpdateRuleRepository } from '../../shared/updates/rules/update-rule-repository.ts';
import { StackBusyError } from '../../shared/updates/update-errors.ts';
import { createUpdateRepository } from '../../shared/updates/update-repository.ts';
import { lockAccess, lockOwner } from '../access/locked-access.ts';
import { changePeople } from '../access/people-lock.ts';
import { readsByGrants } from '../access/reads-by-grants.ts';
import { assertPermission } from '../access/stack-access.ts';
import { assertMayFollow, changeTags } from '../access/tag-changes.ts';
import { grantToTeams } from '../access/team-grants.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import { decodeContinuation, encodeContinuation } from '../platform/http/continuation.ts';
import type { Caller, Dialect } from '../platform/http/request.ts';
import { isRootOnly } from '../state/resources/root-only.ts';
import { assertQueueTags } from '../updates/queue/queue-tags.ts';
import { assertNotConsumed, awaitConsumers, warnOfConsumers } from '../updates/rules/consumers.ts';
import { admitCreation, lockCreation, type NewStack, organizationNotFound } from './stack-creation.ts';
import { readStackView, type StackView } from './stack-view.ts';
import { editTag, type TagEdit } from './tag-edit.ts';

export interface StackListQuery {
  readonly organization: string | null;
  readonly project: string | null;
  readonly tagName: string | null;
  readonly tagValue: string | null;
  readonly unstarted: boolean;
  readonly continuationToken: string | null;
}

/** Stacks per page, and bytes of their tags and names. Large, because `pulumi project ls` reads one page. */
const pageSize = 10_000;
const pageBytes = 16 * 1024 * 1024;
/** Stacks, and bytes, that are read and held at once. */
const chunkSize = 1_000;
const chunkBytes = 1024 * 1024;
/** Organizations that one statement searches. */
const organizationsAtOnce = 100;

export class StackService {
  readonly #context: ApiContext;
  readonly #reclaim: Reclaim;
  readonly #lists: StackListRepository;

  constructor(context: ApiContext, reclaim: Reclaim) {
    this.#context = context;
    this.#lists = createStackListRepository(context.db);
    this.#reclaim = reclaim;
  }

  /**
   * Also creates its organization and project if they do not exist. The creator of an organization becomes its admin. Throws ConflictError
   * if the stack exists, ForbiddenError, and QuotaReachedError. Throws NotFoundError for non-members who may not create organizations,
   * whether or not this one exists.
   */
  async create(caller: Caller, stack: NewStack, audit: AuditTrail): Promise<StackRow> {
    const { documents } = this.#context;
    const { ref } = stack;
    assertStackRef(ref);
    assertQueueTags(stack.tags);
    await admitCreation(this.#context, caller, stack);
    const { quotas } = this.#context;
    await quotas.assertMayKeepMore(ref.organization);
    const limits = await quotas.limitsOf(ref.organization);
    const state = stack.state && (await storeDeployment(documents, bytesOf(stack.state)));
    try {
      return await changePeople(this.#context.db, stack.teams.length > 0 ? ref.organization : null, async (tx) => {
        const identity = createIdentityRepository(tx);
        const stacks = createStackRepository(tx);
        const organization = await identity.ensureOrganization(ref.organization);
        if (organization.created && caller.belongs) throw organizationNotFound(ref.organization);
        let access: LockedAccess | null = null;
        if (organization.created && caller.userId !== null) {
          await identity.setMembership(organization.id, caller.userId, 'admin');
          // After the membership, which locks the user exclusively: two calls that share this lock would deadlock.
          await lockOwner(tx, caller);
          const { organization: name } = ref;
          await audit.record(tx, { action: 'organization.create', organization: name, object: name });
        } else access = await lockCreation(identity, caller, stack);
        const id = randomUUID();
        await grantToTeams(tx, caller, access, { ...stack, id, organizationId: organization.id }, audit);
        const owner = { id: organization.id, name: ref.organization };
        await quotas.assertMayAddStack(tx, owner, limits);
        const projectId = await stacks.ensureProject(organization.id, ref.project);
        const place = { organizationId: organization.id, projectId };
        await stacks.insert({ id, projectId, name: ref.stack, tags: JSON.stringify(stack.tags) });
        // Checked after the lock, when the deletion of a stack with this name has ended.
        const formerId = access && (await assertMayFollow(tx, access, place, stack));
        if (formerId !== null) await createRestorableStackRepository(tx).addToGroupsOf(formerId, id);
        if (state) await recordInitialState(tx, id, state);
        const created = await stacks.lockById(id);
        if (!created) throw stackNotFound(ref);
        await quotas.assertMayKeepStack(tx, owner, limits);
        const details = { stackId: id, withState: state !== null };
        await audit.record(tx, { organization: ref.organization, object: formatStackRef(ref), details });
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

  /**
   * Whether the caller may read a stack of the project; if not, `pulumi new` may take its name. For callers who may read any stack, the
   * contract's projects outlive their stacks.
   */
  projectExists({ facts }: Caller, organization: string, project: string, dialect: Dialect): Promise<boolean> {
    return dialect === 'contract' && (!facts || readsAll(facts, project))
      ? this.#context.stacks.projectExists(organization, project)
      : this.#lists.hasReadableStack(organization, project, facts);
  }

  /** Includes stacks that had this name before, as far as the caller may know. */
  isBusy(ref: StackRef, { facts }: Pick<Caller, 'facts'>): Promise<boolean> {
    return this.#context.stacks.isBusy(ref, facts);
  }

  async view(ref: StackRef): Promise<StackView> {
    const { db, stacks } = this.#context;
    const stack = await stacks.findWithFaults(ref);
    if (!stack) throw stackNotFound(ref);
    return readStackView(db, stack);
  }

  /** Yields a page of the stacks that the caller may read, in chunks. Returns the next page's token. */
  async *list(caller: Caller, query: StackListQuery): AsyncGenerator<readonly StackListRow[], string | null> {
    let after =
      query.continuationToken === null ? null : decodeContinuation(query.continuationToken, parseQualifiedName);
    const start = { name: query.organization, from: after?.organization ?? null };
    let organizations = await this.#lists.listOrganizations(caller.tokenId, start);
    // Permissions come from the primary; the replica only lists stacks by them.
    const replica = await this.#context.replica?.begin();
    const lists = createStackListRepository(replica ?? readsByGrants(this.#context.db, organizations));
    let stacks = 0;
    let bytes = 0;
    let rowsAtOnce = chunkSize;
    while (stacks < pageSize && bytes < pageBytes) {
      const limit = Math.min(rowsAtOnce, pageSize - stacks);
      const asked = organizations.slice(0, organizationsAtOnce);
      if (asked.length === 0) return null;
      const rows = await lists.list({
        ...query,
        organizations: asked,
        after: after?.organization === asked[0]?.name ? after : null,
        limit: limit + 1,
        maxBytes: Math.min(chunkBytes, pageBytes - bytes),
      });
      const chunk = rows.slice(0, limit);
      const last = chunk.at(-1);
      if (last) {
        yield chunk;
        after = { organization: last.organization, project: last.project, stack: last.stack };
        stacks += chunk.length;
        bytes += chunk.reduce((sum, row) => sum + row.bytes, 0);
      }
      const isCut = last !== undefined && last.found > chunk.length;
      const next = isCut ? organizations.findIndex(({ name }) => name === last.organization) : asked.length;
      organizations = organizations.slice(next);
      if (organizations.length === 0) return null;
      // Large tags end a chunk early; the rows beyond its end are read again.
      rowsAtOnce = isCut && chunk.length < limit ? Math.min(chunkSize, chunk.length * 2) : chunkSize;
    }
    return after && encodeContinuation(formatStackRef(after));
  }

  /** Throws ForbiddenError for tags by which grants select stacks. */
  async replaceTags(caller: Caller, ref: StackRef, tags: Tags, audit: AuditTrail): Promise<void> {
    await this.#changeTags(caller, ref, () => tags, audit);
  }

  /** Throws EditConflictError, and the errors of `replaceTags`. */
  async editTag(caller: Caller, ref: StackRef, edit: TagEdit, audit: AuditTrail): Promise<void> {
    await this.#changeTags(caller, ref, (tags) => editTag(tags, edit), audit);
  }

  async #changeTags(caller: Caller, ref: StackRef, change: (tags: Tags) => Tags, audit: AuditTrail): Promise<void> {
    const stack = await this.get(ref);
    await this.#context.db.inTransaction(async (tx) => {
      const access = await lockAccess(tx, ref.organization, caller);
      const locked = await createStackRepository(tx).lockById(stack.id);
      if (!locked || formatStackRef(locked) !== formatStackRef(stack)) throw stackNotFound(ref);
      const before = readTags(locked.tags);
      assertPermission(access, locked, before, 'write');
      const tags = change(before);
      assertQueueTags(tags, before);
      await changeTags(tx, access, locked, tags, audit);
    });
  }

  /**
   * When this resolves, no caller can see the stack and its name is free. It can be restored for `deletedStackDays`; afterwards, a sweep
   * deletes its data. With `keepResources`, refuses while the state is incomplete, or has resources other than the stack's root: the
   * message is the exact one that the CLI matches (pkg/backend/httpstate/client/client.go). Throws StackBusyError, FrozenError and
   * JournalFaultError. If other stacks read its outputs, throws ConsumersError if a rule refuses that, and returns a warning if a rule
   * warns.
   */
  async delete(
    caller: Caller,
    ref: StackRef,
    options: { keepResources: boolean },
    audit: AuditTrail,
  ): Promise<string | null> {
    const found = await this.get(ref);
    const warning = await warnOfConsumers(this.#context.db, ref, caller, 'delete');
    const { config, db } = this.#context;
    if (options.keepResources) await this.#reclaim(found.id, { organization: ref.organization });
    // A state that cannot be assembled must not prevent the deletion. The journal stays with the stack.
    else await reclaimStack(this.#context, found.id, config.leaseSeconds, async () => {}, { admitsFault: true });
    const ruled = await createUpdateRuleRepository(db).findStack(ref);
    const unindexed = ruled ? await awaitConsumers(db, ruled) : [];
    const rootOnly = options.keepResources ? await this.#findRootOnlyHead(ref) : null;
    // Only the creation of a stack makes grants of this kind.
    const teams = await createGrantRepository(db).listTeamsOfStack(found.organizationId, found.id);
    if (teams.length > 0 && ruled?.activeUpdateId) throw new StackBusyError();
    await changePeople(db, teams.length > 0 ? ref.organization : null, async (tx) => {
      const access = await lockAccess(tx, ref.organization, caller);
      // Before the stack is locked, because this locks the organization.
      if (teams.length > 0) await createGrantRepository(tx).removeOfStack(found.organizationId, found.id);
      const stacks = createStackRepository(tx);
      const stack = await createUpdateRuleRepository(tx)
        .lockStack(found.id)
        .catch((error: unknown) => {
          throw teams.length > 0 && isLockTimeout(error)
            ? new StackBusyError('It is being changed: please retry')
            : error;
        });
      if (!stack || formatStackRef(stack) !== formatStackRef(found)) throw stackNotFound(ref);
      assertPermission(access, stack, readTags(stack.tags), 'admin');
      assertThawed(stack);
      await assertNotConsumed(tx, stack, access, 'delete', unindexed);
      if (stack.activeUpdateId !== null) throw new StackBusyError();
      if (options.keepResources) {
        await assertNoFault(tx, stack.id);
        await assertEmpty(tx, stack, rootOnly);
      }
      await createUpdateRepository(tx).cancelAll(stack.id);
      const { login, tokenName } = audit.source;
      await stacks.markDeleted(stack.id, { days: config.deletedStackDays, by: login ?? tokenName ?? '' });
      await createAuditRepository(tx).closeSecretReads(stack.id);
      const details = {
        stackId: stack.id,
        stackVersion: stack.stackVersion,
        force: !options.keepResources,
        ...(teams.length > 0 && { teams }),
      };
      await audit.record(tx, { organization: stack.organization, object: formatStackRef(stack), details });
    });
    return warning;
  }

  /** Null if it contains more than the root resource. */
  async #findRootOnlyHead(ref: StackRef): Promise<string | null> {
    const { checkpoints, states } = this.#context;
    const { checkpointId } = await this.get(ref);
    const head = checkpointId === null ? null : await checkpoints.find(checkpointId);
    // A head with another number of resources need not be read.
    if (head?.resourceCount !== 1) return null;
    const read = await states.readHead(ref);
    return read && (await isRootOnly(read.state.bytes)) ? read.state.checkpointId : null;
  }
}

/** Call with the stack locked. `rootOnly`: a checkpoint that is known to have no resources other than the root. */
async function assertEmpty(tx: Queryable, stack: StackRow, rootOnly: string | null): Promise<void> {
  await assertNothingPending(tx, stack.id);
  if (stack.checkpointId === rootOnly) return;
  const head = stack.checkpointId === null ? null : await createCheckpointRepository(tx).find(stack.checkpointId);
  if (head && head.resourceCount > 0) throw new InvalidRequestError('Bad Request: Stack still contains resources.');
}
