export const projectPath = '/api/stacks/:organization/:project';
export const stackPath = `${projectPath}/:stack`;

export const scimPath = '/scim/v2/:organization';

export const policyPacksPath = '/api/orgs/:organization/policypacks';
export const policyGroupsPath = '/api/orgs/:organization/policygroups';

/**
 * The CLI uses `update` in the path for every kind of update; the contract's clients may use the kind. find-my-way matches the
 * alternatives as a pattern.
 */
export const updatePath = `${stackPath}/:kind(^(?:update|preview|refresh|destroy)$)/:updateId`;

export const updateKinds = ['update', 'preview', 'refresh', 'destroy'] as const;

export const apiToken = [{ apiToken: [] }];
export const leaseToken = [{ leaseToken: [] }];
