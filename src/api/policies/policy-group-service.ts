import { violatedConstraint } from '../../shared/platform/db/sqlstate.ts';
import { ConflictError, NotFoundError } from '../../shared/platform/errors/errors.ts';
import { lockManagement } from '../access/locked-access.ts';
import { readsByGrants } from '../access/reads-by-grants.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import { assertSeen } from '../platform/edits/revisions.ts';
import type { Caller } from '../platform/http/request.ts';
import { checkPacks, type EnabledPack, lockPacks } from './enabled-packs.ts';
import type { CreatePolicyGroupRequest, PackReference, UpdatePolicyGroupRequest } from './policies.schemas.ts';
import { assertConfigBytes, assertPolicyName, groupNotFound, seenBy } from './policies.ts';
import {
  addedPacks,
  assertGroupServed,
  assertKept,
  assertServed,
  changeStacks,
  detailsOf,
  isAddition,
  type PackConfigs,
  tagOf,
  withConfig,
} from './policy-group-changes.ts';
import {
  createPolicyGroupRepository,
  type PolicyGroupRepository,
  type PolicyGroupRow,
} from './policy-group-repository.ts';
import { packRepository } from './policy-pack-service.ts';

interface GroupName {
  readonly organization: string;
  readonly name: string;
}

/** The default group lists no stacks: it has all that are in no other group. */
export interface PolicyGroupView {
  readonly group: PolicyGroupRow;
  readonly stacks: Awaited<ReturnType<PolicyGroupRepository['listStacks']>>;
  readonly packs: Awaited<ReturnType<PolicyGroupRepository['listPacks']>>;
}

export type PolicyGroupSummary = Awaited<ReturnType<PolicyGroupRepository['list']>>[number];

/** The CLI reads all groups in one response. */
const maxGroups = 500;

/** The version was enabled when the caller read the group. */
export interface SeenPack {
  readonly pack: string;
  readonly tag: string | null;
}

/** Groups determine which packs the updates of which stacks must run. */
export class PolicyGroupService {
  readonly #context: ApiContext;
  readonly #groups: PolicyGroupRepository;

  constructor(context: ApiContext) {
    this.#context = context;
    this.#groups = createPolicyGroupRepository(context.db);
  }

  list(caller: Caller, organization: string) {
    const facts = seenBy(caller);
    const read = readsByGrants(this.#context.db, [{ name: organization, facts: facts && JSON.stringify(facts) }]);
    return createPolicyGroupRepository(read).list(organization, facts);
  }

  /** Includes the stacks that the caller may read; for callers who manage groups, all. */
  async get(organization: string, caller: Caller, name: string): Promise<PolicyGroupView> {
    const group = await this.#groups.find(organization, name);
    if (!group) throw groupNotFound(organization, name);
    const stacks = await this.#groups.listStacks(group.id, seenBy(caller));
    return { group, stacks, packs: await this.#groups.listPacks(group.id) };
  }

  /** Throws ConflictError if the name is taken or there are too many. */
  async create(
    organization: string,
    caller: Caller,
    request: CreatePolicyGroupRequest,
    audit: AuditTrail,
  ): Promise<void> {
    const { name } = request;
    assertPolicyName('policy group', name);
    assertGroupServed(request);
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

  /** Throws ConflictError for the default group. */
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
   * Makes all changes in the order of the requests, or none. `keepsConfig`: an added pack keeps its configuration in the group. `seen`: the
   * version of a pack that the caller has read; null: the pack was not enabled. Throws InvalidRequestError, NotFoundError,
   * PayloadTooLargeError if the updates of a stack would have too much configuration, EditConflictError if the version is not the seen one,
   * and ConflictError if a new name is taken, for too many stacks, and for an unsupported change of the default group.
   */
  async update(
    { organization, name }: GroupName,
    caller: Caller,
    given: readonly UpdatePolicyGroupRequest[],
    audit: AuditTrail,
    { keepsConfig = false, seen }: { readonly keepsConfig?: boolean; readonly seen?: SeenPack | undefined } = {},
  ): Promise<void> {
    assertServed(given);
    const { db, config } = this.#context;
    const kept = keepsConfig ? await listConfigs(this.#groups, await this.#groups.find(organization, name)) : null;
    const requests = kept === null ? given : given.map((request) => withConfig(request, kept));
    const added = requests.flatMap(addedPacks);
    const checked = await checkPacks(packRepository(db), organization, added, config.limits.maxFieldBytes);
    await db.inTransaction(async (tx) => {
      await lockManagement(tx, organization, caller);
      const groups = createPolicyGroupRepository(tx);
      // A stack may be in several groups, which have a common limit.
      await groups.lockAll(organization);
      const group = await lockGroup(groups, organization, name);
      if (seen) await assertSeenPack(groups, group, seen);
      if (kept !== null) assertKept(added, kept, await listConfigs(groups, group));
      await changeStacks(groups, organization, group, requests);
      const packs = await lockPacks(packRepository(tx), organization, added, checked);
      await changePacks(groups, group, requests, packs);
      if (requests.some(isAddition)) await this.#assertConfigBytes(groups, group);
      await audit.record(tx, { organization, object: `${organization}/${name}`, details: detailsOf(requests) });
      const newName = requests.findLast((request) => typeof request.newName === 'string')?.newName;
      if (typeof newName === 'string') await rename(groups, group, newName);
    });
    this.#log(organization, name, caller, 'policy group changed');
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

async function assertSeenPack(groups: PolicyGroupRepository, { id }: PolicyGroupRow, seen: SeenPack): Promise<void> {
  const found = (await groups.listPacks(id)).find(({ name }) => name === seen.pack);
  await assertSeen([seen.tag ?? ''], found?.versionTag ?? '', `the version of ${seen.pack} in this group`, () => null);
}

/** JSON text, by the name of the pack. */
async function listConfigs(groups: PolicyGroupRepository, group: PolicyGroupRow | null): Promise<PackConfigs> {
  const packs = group === null ? [] : await groups.listPacks(group.id);
  return new Map(packs.map((pack) => [pack.name, pack.config]));
}

/** Enables and disables packs in the order of the requests. Throws NotFoundError. */
async function changePacks(
  groups: PolicyGroupRepository,
  group: PolicyGroupRow,
  requests: readonly UpdatePolicyGroupRequest[],
  versionOf: (pack: PackReference) => EnabledPack,
): Promise<void> {
  // Each request of a batch may replace the packs, so enabled packs are written once, and cleared ones are not cleared again.
  const enabled = new Map<string, EnabledPack>();
  let isCleared = false;
  const write = async (): Promise<void> => {
    if (enabled.size === 0) return;
    await groups.setPacks(group.id, [...enabled.values()]);
    enabled.clear();
    isCleared = false;
  };
  for (const request of requests) {
    const { policyPacks, removePolicyPack } = request;
    if (policyPacks) {
      enabled.clear();
      if (!isCleared) await groups.clearPacks(group.id);
      isCleared = true;
    }
    if (removePolicyPack) {
      await write();
      await removePack(groups, group, removePolicyPack);
    }
    for (const pack of addedPacks(request)) {
      const version = versionOf(pack);
      enabled.set(version.packId, version);
    }
  }
  await write();
}

async function removePack(groups: PolicyGroupRepository, group: PolicyGroupRow, pack: PackReference): Promise<void> {
  const tag = tagOf(pack);
  if (await groups.removePack(group.id, pack.name, tag)) return;
  const version = tag === null ? '' : ` version ${tag.slice(0, 100)}`;
  throw new NotFoundError(
    `Policy pack ${pack.name.slice(0, 100)}${version} is not enabled in policy group ${group.name}`,
  );
}

async function rename(groups: PolicyGroupRepository, group: PolicyGroupRow, name: string): Promise<void> {
  if (group.isDefault && name !== group.name)
    throw new ConflictError('The default policy group cannot be renamed: the CLI knows it by its name');
  await groups.rename(group.id, name).catch((error: unknown) => {
    throw violatedConstraint(error) === 'policy_groups_name_key' ? groupExists(name) : error;
  });
}

async function lockGroup(groups: PolicyGroupRepository, organization: string, name: string): Promise<PolicyGroupRow> {
  const group = await groups.lock(organization, name);
  if (!group) throw groupNotFound(organization, name);
  return group;
}

function groupExists(name: string): ConflictError {
  return new ConflictError(`There is already a policy group ${name}`);
}
