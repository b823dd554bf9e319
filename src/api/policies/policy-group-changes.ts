import {
  ConflictError,
  InvalidRequestError,
  NotFoundError,
  UnavailableError,
} from '../../shared/platform/errors/errors.ts';
import { type CreatePolicyGroupRequest, type PackReference, UpdatePolicyGroupRequest } from './policies.schemas.ts';
import { assertPolicyName } from './policies.ts';
import type { PolicyGroupRepository, PolicyGroupRow } from './policy-group-repository.ts';

type StackReference = NonNullable<UpdatePolicyGroupRequest['addStack']>;

/** The CLI reads all stacks of a group in one response. */
const maxStacks = 10_000;
/** The number is limited, because each pack is looked up. */
const maxPacks = 1_000;

const noAccounts = 'Insights accounts are another product of Pulumi, which this server does not provide';
const noAudits =
  'Audit groups are another product of Pulumi, which this server does not provide. Policy groups here are preventative: policies run during updates';

/** Refuses groups of other products. */
export function assertGroupServed({ agentPoolId, entityType, mode, ...rules }: CreatePolicyGroupRequest): void {
  if ((entityType ?? 'stacks') !== 'stacks') throw new InvalidRequestError(`${noAccounts}. Omit --entity-type`);
  if ((mode || 'preventative') !== 'preventative' || agentPoolId) throw new InvalidRequestError(noAudits);
  assertNoRules(rules);
}

/** Refuses changes of other products, invalid names, and too many changes at once. */
export function assertServed(requests: readonly UpdatePolicyGroupRequest[]): void {
  for (const request of requests) {
    const { addInsightsAccount, agentPoolId, insightsAccounts, newName, removeInsightsAccount } = request;
    if (addInsightsAccount || removeInsightsAccount || (insightsAccounts ?? []).length > 0)
      throw new InvalidRequestError(noAccounts);
    if (agentPoolId) throw new InvalidRequestError(noAudits);
    assertNoRules(request);
    assertKnown(request);
    if (typeof newName === 'string') assertPolicyName('policy group', newName);
  }
  const total = (count: (request: UpdatePolicyGroupRequest) => number) =>
    requests.reduce((sum, request) => sum + count(request), 0);
  const stacks = total(({ removeStack, ...request }) => addedStacks(request).length + (removeStack ? 1 : 0));
  const packs = total(({ removePolicyPack, ...request }) => addedPacks(request).length + (removePolicyPack ? 1 : 0));
  if (stacks > maxStacks || packs > maxPacks)
    throw new InvalidRequestError(
      `A call names ${stacks} stacks and ${packs} policy packs; at most ${maxStacks} and ${maxPacks} are accepted`,
    );
}

type MatchRules = Pick<UpdatePolicyGroupRequest, 'accountMatchRule' | 'stackMatchRule'>;

function assertNoRules({ accountMatchRule, stackMatchRule }: MatchRules): void {
  if (accountMatchRule) throw new InvalidRequestError(noAccounts);
  if (stackMatchRule)
    throw new InvalidRequestError(
      'This server has no match rules (--stack-rule): add each stack to the policy group (pulumi policy group edit --add-stack). The default policy group has all stacks that are in no other',
    );
}

/** A change that only newer clients know must not seem to be made. */
function assertKnown(request: UpdatePolicyGroupRequest): void {
  const unknown = Object.entries(request).flatMap(([name, value]) =>
    value === undefined || value === null || Object.hasOwn(UpdatePolicyGroupRequest.properties, name) ? [] : name,
  );
  if (unknown.length > 0)
    throw new InvalidRequestError(
      `This server does not know this change of a policy group: ${unknown.join(', ').slice(0, 200)}`,
    );
}

/** The changes for the audit log. The configuration is left out, because it may contain anything. */
export function detailsOf(requests: readonly UpdatePolicyGroupRequest[]): Readonly<Record<string, unknown>> {
  const [only, ...others] = requests.map(detailsOfOne);
  return only && others.length === 0 ? only : { changes: [only, ...others] };
}

function detailsOfOne(request: UpdatePolicyGroupRequest): Readonly<Record<string, unknown>> {
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

/** Only these changes may add configuration to the updates of a stack. */
export function isAddition(request: UpdatePolicyGroupRequest): boolean {
  return addedStacks(request).length + addedPacks(request).length > 0;
}

/** Of several versions of a pack, the last one counts: the CLI appends the new one. */
export function addedPacks({ addPolicyPack, policyPacks }: UpdatePolicyGroupRequest): readonly PackReference[] {
  return [...(policyPacks ?? []), ...(addPolicyPack ? [addPolicyPack] : [])];
}

/** JSON text, by the name of the pack. */
export type PackConfigs = ReadonlyMap<string, string>;

/** The pack keeps its present configuration. */
export function withConfig(request: UpdatePolicyGroupRequest, kept: PackConfigs): UpdatePolicyGroupRequest {
  const { addPolicyPack: pack } = request;
  if (!pack) return request;
  const config = JSON.parse(kept.get(pack.name) ?? '{}') as Record<string, unknown>;
  return { ...request, addPolicyPack: { ...pack, config } };
}

/** Throws UnavailableError if a configuration has changed since it was checked. */
export function assertKept(added: readonly PackReference[], kept: PackConfigs, current: PackConfigs): void {
  for (const { name } of added)
    if (kept.get(name) !== current.get(name))
      throw new UnavailableError(`The configuration of policy pack ${name} is changing; please retry`, {
        retryAfterSeconds: 1,
      });
}

function addedStacks({ addStack, stacks }: UpdatePolicyGroupRequest): readonly StackReference[] {
  return [...(stacks ?? []), ...(addStack ? [addStack] : [])];
}

/** Adds and removes stacks in the order of the requests. Throws NotFoundError, InvalidRequestError, ConflictError. */
export async function changeStacks(
  groups: PolicyGroupRepository,
  organization: string,
  group: PolicyGroupRow,
  requests: readonly UpdatePolicyGroupRequest[],
): Promise<void> {
  // A batch may replace and remove stacks in each of its requests, so the result is written once.
  const findStack = await stackFinder(groups, organization, requests);
  const added = new Set<string>();
  let removed: Set<string> | 'all' = new Set();
  for (const request of requests) {
    const { removeStack, stacks } = request;
    const named = addedStacks(request);
    if (group.isDefault && (named.length > 0 || removeStack)) {
      throw new ConflictError(
        'The default policy group has all stacks that are in no other group. Add stacks to a group of their own: `pulumi policy group new`',
      );
    }
    if (stacks) {
      removed = 'all';
      added.clear();
    }
    if (removeStack) {
      const id = findStack(removeStack);
      if (removed !== 'all') removed.add(id);
      added.delete(id);
    }
    for (const reference of named) added.add(findStack(reference));
  }
  if (removed === 'all') await groups.removeStacks(group.id, null);
  else if (removed.size > 0) await groups.removeStacks(group.id, [...removed]);
  if (added.size === 0) return;
  await groups.addStacks(group.id, [...added]);
  if ((await groups.countStacks(group.id, maxStacks + 1)) > maxStacks)
    throw new ConflictError(
      `A policy group can have at most ${maxStacks} stacks. The default policy group has all stacks that are in no other`,
    );
}

/** Looks up the stacks of all requests at once. The result throws NotFoundError and InvalidRequestError. */
async function stackFinder(
  groups: PolicyGroupRepository,
  organization: string,
  requests: readonly UpdatePolicyGroupRequest[],
): Promise<(reference: StackReference) => string> {
  const keyOf = ({ name, routingProject }: StackReference) => JSON.stringify([routingProject || null, name]);
  const named = new Map<string, { readonly at: number; readonly name: string; readonly project: string | null }>();
  for (const request of requests)
    for (const reference of [...addedStacks(request), ...(request.removeStack ? [request.removeStack] : [])]) {
      const { name, routingProject } = reference;
      const key = keyOf(reference);
      if (!named.has(key)) named.set(key, { at: named.size, name, project: routingProject || null });
    }
  const found = named.size === 0 ? null : await groups.findStacks(organization, [...named.values()]);
  return (reference) => {
    const { name, routingProject } = reference;
    const [id, other] = found?.get(named.get(keyOf(reference))?.at ?? -1) ?? [];
    const shown = `${routingProject ? `${routingProject.slice(0, 100)}/` : ''}${name.slice(0, 100)}`;
    if (id === undefined) throw new NotFoundError(`There is no stack ${shown} in organization ${organization}`);
    if (other !== undefined) {
      throw new InvalidRequestError(
        `Several projects have a stack ${shown}. Name it with its project: <project>/${shown}`,
      );
    }
    return id;
  };
}

/** Null: any version, or the newest. */
export function tagOf({ version, versionTag }: PackReference): string | null {
  return versionTag || (version ? String(version) : null);
}
