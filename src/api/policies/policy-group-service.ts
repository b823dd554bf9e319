import type { Queryable } from '../../shared/platform/db/sql.ts';
import { violatedConstraint } from '../../shared/platform/db/sqlstate.ts';
import { ConflictError, InvalidRequestError, NotFoundError } from '../../shared/platform/errors/errors.ts';
import { lockManagement } from '../access/locked-access.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import { assertFieldSize } from '../platform/http/field-size.ts';
import type { Caller } from '../platform/http/request.ts';
import type {
  CreatePolicyGroupRequest,
  CreatePolicyPackRequest,
  PackReference,
  UpdatePolicyGroupRequest,
} from './policies.schemas.ts';
import { assertConfigBytes, assertPolicyConfig, assertPolicyName, groupNotFound, packNotFound } from './policies.ts';
import {
  createPolicyGroupRepository,
  type PolicyGroupRepository,
  type PolicyGroupRow,
} from './policy-group-repository.ts';
import { packRepository } from './policy-pack-service.ts';

type StackReference = NonNullable<UpdatePolicyGroupRequest['addStack']>;

interface GroupName {
  readonly organization: string;
  readonly name: string;
}

/** A group with its stacks and packs. The default group lists no stacks: it has all that are in no other. */
export interface PolicyGroupView {
  readonly group: PolicyGroupRow;
  readonly stacks: Awaited<ReturnType<PolicyGroupRepository['listStacks']>>;
  readonly packs: Awaited<ReturnType<PolicyGroupRepository['listPacks']>>;
}

export type PolicyGroupSummary = Awaited<ReturnType<PolicyGroupRepository['list']>>[number];

/** The CLI reads all groups, and all stacks of a group, in one response. */
const maxGroups = 500;
const maxStacks = 10_000;

const notServed = 'Insights accounts are another product of Pulumi, which this server does not provide';

/** Policy groups: which packs the updates of which stacks must run. */
export class PolicyGroupService {
  readonly #context: ApiContext;
  readonly #groups: PolicyGroupRepository;

  constructor(context: ApiContext) {
    this.#context = context;
    this.#groups = createPolicyGroupRepository(context.db);
  }

  list(organization: string) {
    return this.#groups.list(organization);
  }

  /** With the stacks that the caller may read; for callers who manage groups, with all. Throws NotFoundError. */
  async get(organization: string, caller: Caller, name: string): Promise<PolicyGroupView> {
    const group = await this.#groups.find(organization, name);
    if (!group) throw groupNotFound(organization, name);
    const facts = caller.role === 'admin' && !caller.isScoped ? null : caller.facts;
    const stacks = await this.#groups.listStacks(group.id, facts);
    return { group, stacks, packs: await this.#groups.listPacks(group.id) };
  }

  /** Throws InvalidRequestError for groups of another product, and ConflictError if the name is taken or there are too many. */
  async create(
    organization: string,
    caller: Caller,
    request: CreatePolicyGroupRequest,
    audit: AuditTrail,
  ): Promise<void> {
    const { name, entityType, mode, agentPoolId } = request;
    assertPolicyName('policy group', name);
    if ((entityType ?? 'stacks') !== 'stacks') throw new InvalidRequestError(`${notServed}. Omit --entity-type`);
    if ((mode || 'preventative') !== 'preventative' || agentPoolId) {
      throw new InvalidRequestError(
        'Audit groups are another product of Pulumi, which this server does not provide. Policy groups here are preventative: policies run during updates',
      );
    }
    await this.#context.db
      .inTransaction(async (tx) => {
        await lockManagement(tx, organization, caller);
        const groups = createPolicyGroupRepository(tx);
        await groups.lockAll(organization);
        if ((await groups.count(organization, maxGroups)) >= maxGroups)
          throw new ConflictError(`An organization can have at most ${maxGroups} policy groups: remove one first`);
        await groups.insert(organization, name);
        await audit.record(tx, { organization, object: `${organization}/${name}` });
      })
      .catch((error: unknown) => {
        throw violatedConstraint(error) === 'policy_groups_name_key' ? groupExists(name) : error;
      });
    this.#log(organization, name, caller, 'policy group created');
  }

  /** Throws NotFoundError, and ConflictError for the default group. */
  async delete({ organization, name }: GroupName, caller: Caller, audit: AuditTrail): Promise<void> {
    await this.#context.db.inTransaction(async (tx) => {
      await lockManagement(tx, organization, caller);
      const groups = createPolicyGroupRepository(tx);
      const group = await lockGroup(groups, organization, name);
      if (group.isDefault) throw new ConflictError('The default policy group cannot be removed');
      await groups.delete(group.id);
      await audit.record(tx, { organization, object: `${organization}/${name}` });
    });
    this.#log(organization, name, caller, 'policy group removed');
  }

  /**
   * Makes all changes of a request, or none. Throws InvalidRequestError, NotFoundError, PayloadTooLargeError for more configuration
   * than the updates of a stack may have, and ConflictError if the new name is taken, for too many stacks and for an unsupported change
   * of the default group.
   */
  async update(
    { organization, name }: GroupName,
    caller: Caller,
    request: UpdatePolicyGroupRequest,
    audit: AuditTrail,
  ): Promise<void> {
    if (request.addInsightsAccount || request.removeInsightsAccount || (request.insightsAccounts ?? []).length > 0) {
      throw new InvalidRequestError(notServed);
    }
    if (typeof request.newName === 'string') assertPolicyName('policy group', request.newName);
    await this.#context.db.inTransaction(async (tx) => {
      await lockManagement(tx, organization, caller);
      const groups = createPolicyGroupRepository(tx);
      // A stack may be in several groups, which together have a limit.
      await groups.lockAll(organization);
      const group = await lockGroup(groups, organization, name);
      await changeStacks(groups, organization, group, request);
      await this.#changePacks(tx, organization, group, request);
      if (isAddition(request)) await this.#assertConfigBytes(groups, group);
      await audit.record(tx, { organization, object: `${organization}/${name}`, details: detailsOf(request) });
      if (typeof request.newName !== 'string' || request.newName === name) return;
      const { newName } = request;
      if (group.isDefault)
        throw new ConflictError('The default policy group cannot be renamed: the CLI knows it by its name');
      await groups.rename(group.id, newName).catch((error: unknown) => {
        throw violatedConstraint(error) === 'policy_groups_name_key' ? groupExists(newName) : error;
      });
    });
    this.#log(organization, name, caller, 'policy group changed');
  }

  async #changePacks(
    tx: Queryable,
    organization: string,
    group: PolicyGroupRow,
    { addPolicyPack, policyPacks, removePolicyPack }: UpdatePolicyGroupRequest,
  ): Promise<void> {
    const groups = createPolicyGroupRepository(tx);
    if (policyPacks) await groups.clearPacks(group.id);
    if (removePolicyPack) {
      const tag = tagOf(removePolicyPack);
      if (!(await groups.removePack(group.id, removePolicyPack.name, tag))) {
        const version = tag === null ? '' : ` version ${tag.slice(0, 100)}`;
        throw new NotFoundError(
          `Policy pack ${removePolicyPack.name.slice(0, 100)}${version} is not enabled in policy group ${group.name}`,
        );
      }
    }
    // Of several versions of a pack in the list, the last one stays: the CLI appends the new one.
    for (const pack of [...(policyPacks ?? []), ...(addPolicyPack ? [addPolicyPack] : [])]) {
      await this.#enable(tx, organization, group, pack);
    }
  }

  async #enable(tx: Queryable, organization: string, group: PolicyGroupRow, pack: PackReference): Promise<void> {
    if ((pack.environments ?? []).length > 0) {
      throw new InvalidRequestError(
        'Pulumi ESC (environments) is another product of Pulumi, which this server does not provide. Configure policy packs without environments',
      );
    }
    const packs = packRepository(tx);
    // A lock, so that the version is not removed meanwhile.
    const locked = await packs.lock(organization, pack.name);
    if (!locked) throw packNotFound(organization, pack.name);
    const tag = tagOf(pack);
    const version =
      tag === null ? await packs.findNewest(locked.id) : await packs.findVersion(organization, pack.name, tag);
    if (!version?.isPublished || version.isRemoved) throw packNotFound(organization, pack.name, tag ?? undefined);
    const { policies } = JSON.parse(version.description) as CreatePolicyPackRequest;
    assertPolicyConfig(pack.name, pack.config ?? {}, new Set((policies ?? []).map((policy) => policy.name)));
    const config = JSON.stringify(pack.config ?? {});
    assertFieldSize('The configuration of the policy pack', config, this.#context.config.limits.maxFieldBytes);
    await createPolicyGroupRepository(tx).setPack(group.id, { packId: locked.id, versionId: version.id, config });
  }

  async #assertConfigBytes(groups: PolicyGroupRepository, { id, name }: PolicyGroupRow): Promise<void> {
    const { maxFieldBytes } = this.#context.config.limits;
    for (const { bytes, project, stack } of await groups.findConfigBytes(id)) {
      const where = stack === null ? `policy group ${name}` : `stack ${project}/${stack}, in all its policy groups,`;
      assertConfigBytes(where, bytes, maxFieldBytes);
    }
  }

  #log(organization: string, group: string, caller: Caller, message: string): void {
    this.#context.logger.info({ policyGroup: `${organization}/${group}`, login: caller.login }, message);
  }
}

/** The changes of a request, for the audit log: without configuration, which may contain anything. */
function detailsOf(request: UpdatePolicyGroupRequest): Readonly<Record<string, unknown>> {
  const stack = ({ name, routingProject }: StackReference) => `${routingProject || '*'}/${name}`;
  const pack = (given: PackReference) => `${given.name}@${tagOf(given) ?? 'any'}`;
  const { addPolicyPack, addStack, newName, policyPacks, removePolicyPack, removeStack, stacks } = request;
  return {
    ...(newName ? { newName } : {}),
    ...(addStack ? { addStack: stack(addStack) } : {}),
    ...(removeStack ? { removeStack: stack(removeStack) } : {}),
    ...(stacks ? { stacks: stacks.map(stack) } : {}),
    ...(addPolicyPack ? { addPolicyPack: pack(addPolicyPack) } : {}),
    ...(removePolicyPack ? { removePolicyPack: pack(removePolicyPack) } : {}),
    ...(policyPacks ? { policyPacks: policyPacks.map(pack) } : {}),
  };
}

/** Whether it may add configuration to updates of a stack. */
function isAddition({ addPolicyPack, addStack, policyPacks, stacks }: UpdatePolicyGroupRequest): boolean {
  return Boolean(addPolicyPack || addStack) || [...(policyPacks ?? []), ...(stacks ?? [])].length > 0;
}

async function lockGroup(groups: PolicyGroupRepository, organization: string, name: string): Promise<PolicyGroupRow> {
  const group = await groups.lock(organization, name);
  if (!group) throw groupNotFound(organization, name);
  return group;
}

async function changeStacks(
  groups: PolicyGroupRepository,
  organization: string,
  group: PolicyGroupRow,
  { addStack, removeStack, stacks }: UpdatePolicyGroupRequest,
): Promise<void> {
  const added = [...(stacks ?? []), ...(addStack ? [addStack] : [])];
  if (group.isDefault && (added.length > 0 || removeStack)) {
    throw new ConflictError(
      'The default policy group has all stacks that are in no other group. Add stacks to a group of their own: `pulumi policy group new`',
    );
  }
  if (stacks) await groups.removeStacks(group.id, null);
  if (removeStack) await groups.removeStacks(group.id, [await findStack(groups, organization, removeStack)]);
  const ids: string[] = [];
  for (const reference of added) ids.push(await findStack(groups, organization, reference));
  if (ids.length === 0) return;
  await groups.addStacks(group.id, ids);
  if ((await groups.countStacks(group.id, maxStacks + 1)) > maxStacks)
    throw new ConflictError(
      `A policy group can have at most ${maxStacks} stacks. The default policy group has all stacks that are in no other`,
    );
}

async function findStack(
  groups: PolicyGroupRepository,
  organization: string,
  { name, routingProject }: StackReference,
): Promise<string> {
  const project = routingProject || null;
  const [id, other] = await groups.findStacks(organization, project, name);
  const shown = `${project === null ? '' : `${project.slice(0, 100)}/`}${name.slice(0, 100)}`;
  if (id === undefined) throw new NotFoundError(`There is no stack ${shown} in organization ${organization}`);
  if (other !== undefined) {
    throw new InvalidRequestError(
      `Several projects have a stack ${shown}. Name it with its project: <project>/${shown}`,
    );
  }
  return id;
}

/** The version that a reference names; null for any, or the newest. */
function tagOf({ version, versionTag }: PackReference): string | null {
  return versionTag || (version ? String(version) : null);
}

function groupExists(name: string): ConflictError {
  return new ConflictError(`There is already a policy group ${name}`);
}
