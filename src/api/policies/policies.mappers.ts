import type { Static } from 'typebox';
import type { ListPolicyGroupsResponse, PolicyGroupResponse } from './policies.schemas.ts';
import type { PolicyGroupSummary, PolicyGroupView } from './policy-group-service.ts';

/** Groups here are all of one kind; the CLI knows others. */
const groupKind = { entityType: 'stacks', mode: 'preventative' } as const;

export function policyGroupSummary({
  name,
  isDefault,
  stackCount,
  packCount,
}: PolicyGroupSummary): Static<typeof ListPolicyGroupsResponse>['policyGroups'][number] {
  return {
    name,
    isOrgDefault: isDefault,
    ...groupKind,
    numStacks: stackCount,
    numEnabledPolicyPacks: packCount,
  };
}

/**
 * A pack has its version either as a tag or as a number, in the form that the CLI sends it: it compares both when it changes the list
 * (cmd/pulumi/policy/policy_group_edit.go).
 */
export function policyGroupResponse({ group, stacks, packs }: PolicyGroupView): Static<typeof PolicyGroupResponse> {
  return {
    name: group.name,
    isOrgDefault: group.isDefault,
    ...groupKind,
    stacks: stacks.map(({ project, stack }) => ({ name: stack, routingProject: project })),
    appliedPolicyPacks: packs.map(({ name, displayName, versionTag, config }) => ({
      name,
      displayName,
      ...(/^\d{1,9}$/.test(versionTag) ? { version: Number(versionTag) } : { versionTag }),
      config: JSON.parse(config) as object,
    })),
    accounts: [],
  };
}
