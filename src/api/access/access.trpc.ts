import { Type } from 'typebox';
import { seenByField } from '../platform/edits/revisions.ts';
import { accessHolder, grantResponse } from './access.mappers.ts';
import { ChangeAccessPolicyRequest } from './access-policy.schemas.ts';
import { type AccessPolicyService, revisionOfPolicy } from './access-policy-service.ts';
import { defaultPage, input, page, Revision } from './procedures/inputs.ts';
import { organizationMutation, organizationProcedure, router, stackProcedure } from './procedures/trpc.ts';
import type { StackAccessService } from './stack-access-service.ts';

declare module './procedures/context.ts' {
  interface ProcedureServices {
    readonly accessPolicy: AccessPolicyService;
    readonly stackAccess: StackAccessService;
  }
}

/** Who may do what with a stack, and what decides that. */
export const accessRouter = router({
  /** Active members, or valid tokens that are no person's. */
  list: stackProcedure('manage')
    .input(input(Type.Object({ holders: Type.Union([Type.Literal('users'), Type.Literal('tokens')]), ...page })))
    .query(async ({ ctx: { services }, input: { cursor, holders, limit = defaultPage, ...ref } }) => {
      const query = { holders, ...(cursor ? { continuationToken: cursor } : {}) };
      const found = await services.stackAccess.list(ref, query, limit);
      return {
        items: found.holders.map(accessHolder),
        /** Those that decide something for one of the items. */
        grants: found.grants.map(grantResponse),
        next: found.continuationToken,
      };
    }),

  /** What roles below admin give. */
  policy: organizationProcedure('manage').query(async ({ ctx: { services }, input: { organization } }) => {
    const policy = await services.accessPolicy.get(organization);
    return { ...policy, revision: revisionOfPolicy(policy) };
  }),

  /** What is left out stays. Running updates that are no longer permitted lose their lock. */
  changePolicy: organizationMutation('manage', 'grant.defaults')
    .input(input(Type.Object({ ...ChangeAccessPolicyRequest.properties, revision: Revision })))
    .mutation(async ({ ctx: { audit, caller, services }, input: { organization, revision, ...change } }) => {
      await services.accessPolicy.change(caller, organization, change, audit, seenByField(revision));
    }),

  /** What the caller may do. */
  mine: stackProcedure('read').query(async ({ ctx: { caller, services }, input: ref }) => {
    const own = await services.stackAccess.explainOwn(caller, ref);
    if (own === null) return null;
    const { token: _token, user: _user, ...holder } = accessHolder(own.holder);
    return { holder, grants: own.grants.map(grantResponse) };
  }),
});
