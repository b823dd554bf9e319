import { Type } from 'typebox';
import { component } from '../platform/protocol/components.ts';
import { AnyObject, Maybe } from '../platform/protocol/core.ts';

export const OrganizationParams = Type.Object({ organization: Type.String() });
export const PolicyPackParams = Type.Object({ organization: Type.String(), pack: Type.String() });
export const PolicyPackVersionParams = Type.Object({
  organization: Type.String(),
  pack: Type.String(),
  versionTag: Type.String(),
});
export const PolicyGroupParams = Type.Object({ organization: Type.String(), group: Type.String() });
export const ArchiveParams = Type.Object({ versionId: Type.String() });
export const ArchiveQuery = Type.Object({
  expires: Type.Optional(Type.String({ description: 'Seconds since the epoch' })),
  signature: Type.Optional(Type.String()),
});

/** apitype.Policy. Other members are stored as sent. */
const Policy = Type.Object(
  { name: Type.String(), configSchema: Maybe(AnyObject) },
  { additionalProperties: true, description: 'A policy and the schema of its configuration' },
);

/** apitype.CreatePolicyPackRequest. Other members are stored as sent. */
export const CreatePolicyPackRequest = component(
  'CreatePolicyPackRequest',
  Type.Object(
    {
      name: Type.String(),
      // Lists repeat the name.
      displayName: Maybe(Type.String({ maxLength: 500 })),
      versionTag: Maybe(Type.String()),
      policies: Maybe(Type.Array(Policy, { maxItems: 10_000 })),
    },
    { additionalProperties: true },
  ),
);
export type CreatePolicyPackRequest = Type.Static<typeof CreatePolicyPackRequest>;

export const CreatePolicyPackResponse = component(
  'CreatePolicyPackResponse',
  Type.Object({
    version: Type.Integer(),
    uploadURI: Type.String({ description: 'Where to PUT the archive, without a token' }),
    requiredHeaders: Type.Object({}, { additionalProperties: Type.String() }),
  }),
);

/** apitype.ListPolicyPacksResponse. */
export const ListPolicyPacksResponse = component(
  'ListPolicyPacksResponse',
  Type.Object({
    policyPacks: Type.Array(
      Type.Object({
        name: Type.String(),
        displayName: Type.String(),
        versions: Type.Array(Type.Integer()),
        versionTags: Type.Array(Type.String()),
      }),
    ),
  }),
);

/** As the pulumiservice provider reads it. */
export const PolicyPackResponse = component(
  'PolicyPackResponse',
  Type.Object({
    name: Type.String(),
    displayName: Type.String(),
    version: Type.Integer(),
    versionTag: Type.String(),
    policies: Type.Array(AnyObject),
    applied: Type.Boolean({ description: 'Whether a policy group has it' }),
  }),
);

/** apitype.GetPolicyPackConfigSchemaResponse. */
export const PolicyPackSchemaResponse = component('PolicyPackSchemaResponse', Type.Object({ configSchema: AnyObject }));

/** apitype.RequiredPolicy. */
export const RequiredPolicy = component(
  'RequiredPolicy',
  Type.Object({
    name: Type.String(),
    version: Type.Integer(),
    versionTag: Type.String(),
    displayName: Type.String(),
    packLocation: Type.String({ description: 'Where to GET the archive, without a token; valid for an hour' }),
    config: AnyObject,
  }),
);
export type RequiredPolicy = Type.Static<typeof RequiredPolicy>;
export const RequiredPoliciesResponse = component(
  'RequiredPoliciesResponse',
  Type.Object({ requiredPolicies: Type.Array(RequiredPolicy) }),
);

/** apitype.PulumiStackReference. */
const StackReference = Type.Object({ name: Type.String(), routingProject: Maybe(Type.String()) });

/** apitype.PolicyPackMetadata. */
const PackReference = Type.Object({
  name: Type.String(),
  version: Maybe(Type.Integer()),
  versionTag: Maybe(Type.String()),
  config: Maybe(AnyObject),
  environments: Maybe(Type.Array(Type.String(), { maxItems: 1_000 })),
});
export type PackReference = Type.Static<typeof PackReference>;

/** Not supported: rules that select stacks and accounts by their tags. */
const matchRules = { stackMatchRule: Maybe(Type.Unknown()), accountMatchRule: Maybe(Type.Unknown()) };

/** apitype.CreatePolicyGroupRequest. */
export const CreatePolicyGroupRequest = component(
  'CreatePolicyGroupRequest',
  Type.Object({
    name: Type.String(),
    entityType: Maybe(Type.String()),
    mode: Maybe(Type.String()),
    agentPoolId: Maybe(Type.String()),
    ...matchRules,
  }),
);
export type CreatePolicyGroupRequest = Type.Static<typeof CreatePolicyGroupRequest>;

/** apitype.UpdatePolicyGroupRequest. All its changes are made, or none. */
export const UpdatePolicyGroupRequest = component(
  'UpdatePolicyGroupRequest',
  Type.Object({
    newName: Maybe(Type.String()),
    addStack: Maybe(StackReference),
    removeStack: Maybe(StackReference),
    addPolicyPack: Maybe(PackReference),
    removePolicyPack: Maybe(PackReference),
    stacks: Maybe(Type.Array(StackReference, { maxItems: 10_000, description: 'Replaces all stacks of the group' })),
    policyPacks: Maybe(
      Type.Array(PackReference, { maxItems: 1_000, description: 'Replaces all policy packs of the group' }),
    ),
    addInsightsAccount: Maybe(AnyObject),
    removeInsightsAccount: Maybe(AnyObject),
    insightsAccounts: Maybe(Type.Array(Type.String(), { maxItems: 1_000 })),
    agentPoolId: Maybe(Type.String()),
    ...matchRules,
    removeStackMatchRule: Maybe(Type.Boolean()),
    removeAccountMatchRule: Maybe(Type.Boolean()),
  }),
  { addPolicyPack: { name: 'guardrails', versionTag: '1.2.0' } },
);
export type UpdatePolicyGroupRequest = Type.Static<typeof UpdatePolicyGroupRequest>;

/** The request as the pulumiservice provider sends it. All changes are made in this order, or none. */
export const UpdatePolicyGroupBatchRequest = component(
  'UpdatePolicyGroupBatchRequest',
  Type.Array(UpdatePolicyGroupRequest, { minItems: 1, maxItems: 10_000 }),
);

const groupMembers = {
  name: Type.String(),
  isOrgDefault: Type.Boolean(),
  entityType: Type.Literal('stacks'),
  mode: Type.Literal('preventative'),
};

/** apitype.ListPolicyGroupsResponse. */
export const ListPolicyGroupsResponse = component(
  'ListPolicyGroupsResponse',
  Type.Object({
    policyGroups: Type.Array(
      Type.Object({ ...groupMembers, numStacks: Type.Integer(), numEnabledPolicyPacks: Type.Integer() }),
    ),
  }),
);

/** apitype.GetPolicyGroupResponse. */
export const PolicyGroupResponse = component(
  'PolicyGroupResponse',
  Type.Object({
    ...groupMembers,
    stacks: Type.Array(Type.Object({ name: Type.String(), routingProject: Type.String() })),
    appliedPolicyPacks: Type.Array(
      Type.Object({
        name: Type.String(),
        displayName: Type.String(),
        version: Type.Optional(Type.Integer()),
        versionTag: Type.Optional(Type.String()),
        config: AnyObject,
      }),
    ),
    accounts: Type.Array(Type.String()),
  }),
);
