import { Type } from 'typebox';
import { grantResponse } from './access.mappers.ts';
import type { GrantService } from './grant-service.ts';
import { defaultPage, input, Name, page, text } from './procedures/inputs.ts';
import { organizationMutation, organizationProcedure, router } from './procedures/trpc.ts';

declare module './procedures/context.ts' {
  interface ProcedureServices {
    readonly grants: GrantService;
  }
}

const maxPermissions = 20;
/** Exactly one of them. */
const subject = { user: Type.Optional(Name), team: Type.Optional(Name), token: Type.Optional(text(40)) };

/** Permissions in addition to roles, and denials. */
export const grantsRouter = router({
  /** The oldest grants come first: all, or those of one user, team or token, or those on one stack. */
  list: organizationProcedure('manage')
    .input(input(Type.Object({ ...subject, on: Type.Optional(Type.Object({ project: Name, stack: Name })), ...page })))
    .query(async ({ ctx: { services }, input: query }) => {
      const { cursor, limit = defaultPage, on, organization, team, token, user } = query;
      const whose = {
        ...(user === undefined ? {} : { user }),
        ...(team === undefined ? {} : { team }),
        ...(token === undefined ? {} : { token }),
        ...(cursor ? { continuationToken: cursor } : {}),
      };
      const stack = on === undefined ? null : { organization, ...on };
      const { continuationToken, grants } = await services.grants.list(organization, whose, { limit, stack });
      return { items: grants.map(grantResponse), next: continuationToken };
    }),

  /** Gives permissions, denials or a role. */
  give: organizationMutation('manage', 'grant.add')
    .input(
      input(
        Type.Object({
          ...subject,
          effect: Type.Union([Type.Literal('allow'), Type.Literal('deny')]),
          permissions: Type.Optional(Type.Array(text(40), { maxItems: maxPermissions })),
          role: Type.Optional(text(40)),
          stacks: Type.Optional(text(300)),
          tag: Type.Optional(Type.Object({ name: text(100), value: Type.Optional(text(1_000)) })),
        }),
      ),
    )
    .mutation(async ({ ctx: { audit, caller, services }, input: { organization, ...request } }) =>
      grantResponse(await services.grants.create(caller, organization, request, audit)),
    ),

  take: organizationMutation('manage', 'grant.remove')
    .input(input(Type.Object({ id: text(40) })))
    .mutation(async ({ ctx: { audit, caller, services }, input: { id, organization } }) => {
      await services.grants.remove(caller, organization, id, audit);
    }),
});
