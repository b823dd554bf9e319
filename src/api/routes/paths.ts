/** Paths of the protocol, shared by the route files. */
export const projectPath = '/api/stacks/:organization/:project';
export const stackPath = `${projectPath}/:stack`;

/**
 * The CLI names every update's path with the word `update`, whatever its kind; the contract's clients may use the kind.
 * find-my-way takes the alternatives as a pattern.
 */
export const updatePath = `${stackPath}/:kind(^(?:update|preview|refresh|destroy)$)/:updateId`;

export const updateKinds = ['update', 'preview', 'refresh', 'destroy'] as const;

export const apiToken = [{ apiToken: [] }];
export const leaseToken = [{ leaseToken: [] }];
