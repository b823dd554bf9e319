import { Type } from 'typebox';
import { seenByField } from '../platform/edits/revisions.ts';
import { accessHolder, grantResponse } from './access.mappers.ts';
import { ChangeAccessPolicyRequest } from './access-policy.schemas.ts';
import { type AccessPolicyService, revisionOfPolicy } from './access-policy-service.ts';
import type { ManagedObjectService } from './managed-object-service.ts';
import { defaultPage, input, page, Revision, text } from './procedures/inputs.ts';
import { organizationMutation, organizationProcedure, router, stackProcedure } from './procedures/trpc.ts';
import type { StackAccessService } from './stack-access-service.ts';

declare module './procedures/context.ts' {
  interface ProcedureServices {
    readonly accessPolicy: AccessPolicyService;
    readonly managedObjects: ManagedObjectService;
    readonly stackAccess: StackAccessService;
  }
}

export const accessRouter = router({
  /** Active members, or valid tokens that belong to no user. */
  list: stackProcedure('manage')
    .input(input(Type.Object({ holders: Type.Union([Type.Literal('users'), Type.Literal('tokens')]), ...page })))
    .query(async ({ ctx: { caller, services }, input: { cursor, holders, limit = defaultPage, ...ref } }) => {
      const query = { holders, ...(cursor ? { continuationToken: cursor } : {}) };
      const found = await services.stackAccess.list(caller, ref, query, limit);
      return {
        items: found.holders.map(accessHolder),
        grants: found.grants.map(grantResponse),
        next: found.continuationToken,
      };
    }),

  policy: organizationProcedure('manage').query(async ({ ctx: { services }, input: { organization } }) => {
    const policy = await services.accessPolicy.get(organization);
    return { ...policy, revision: revisionOfPolicy(policy) };
  }),

  /** The objects that a configuration declares. */
  managed: organizationProcedure('manage')
    .input(input(Type.Object({ kind: text(50) })))
    .query(async ({ ctx: { services }, input: { kind, organization } }) => ({
      objects: await services.managedObjects.listOfKind(organization, kind),
    })),

  /** Shown to a person before they change the object by hand. */
  declaration: organizationProcedure('manage')
    .input(input(Type.Object({ kind: text(50), object: text(250) })))
    .query(async ({ ctx: { services }, input: { kind, object, organization } }) => ({
      declaration: await services.managedObjects.findDeclaration(organization, kind, object),
    })),

  /** Omitted fields stay unchanged. Running updates that are no longer permitted lose their lock. */
  changePolicy: organizationMutation('manage', 'grant.defaults')
    .input(input(Type.Object({ ...ChangeAccessPolicyRequest.properties, revision: Revision })))
    .mutation(async ({ ctx: { audit, caller, services }, input: { organization, revision, ...change } }) => {
      await services.accessPolicy.change(caller, organization, change, audit, seenByField(revision));
    }),

  mine: stackProcedure('read').query(async ({ ctx: { caller, services }, input: ref }) => {
    const own = await services.stackAccess.explainOwn(caller, ref);
    if (own === null) return null;
    const { token: _token, user: _user, ...holder } = accessHolder(own.holder);
    return { holder, grants: own.grants.map(grantResponse) };
  }),
});
