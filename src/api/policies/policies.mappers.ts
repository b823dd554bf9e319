import type { Static } from 'typebox';
import type { ListPolicyGroupsResponse, PolicyGroupResponse } from './policies.schemas.ts';
import type { PolicyGroupSummary, PolicyGroupView } from './policy-group-service.ts';

/** All groups here are of one kind; the CLI knows others. */
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
 * A pack has its version either as a tag or as a number, in the form in which the CLI sends it: before 3.260, the CLI compares both when it
 * changes the list (cmd/pulumi/policy/policy_group_edit.go). The provider compares only the tag.
 */
export function policyGroupResponse(
  { group, stacks, packs }: PolicyGroupView,
  { isForProvider }: { readonly isForProvider: boolean },
): Static<typeof PolicyGroupResponse> {
  return {
    name: group.name,
    isOrgDefault: group.isDefault,
    ...groupKind,
    stacks: stacks.map(({ project, stack }) => ({ name: stack, routingProject: project })),
    appliedPolicyPacks: packs.map(({ name, displayName, versionTag, config }) => ({
      name,
      displayName,
      ...versionOf(versionTag, isForProvider),
      config: JSON.parse(config) as object,
    })),
    accounts: [],
  };
}

function versionOf(versionTag: string, isForProvider: boolean) {
  if (!/^[1-9]\d{0,8}$/.test(versionTag)) return { versionTag };
  return { version: Number(versionTag), ...(isForProvider ? { versionTag } : {}) };
}
