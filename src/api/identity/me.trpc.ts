import { Type } from 'typebox';
import { holdfastVersion } from '../../shared/platform/config/config.ts';
import { input, Name } from '../access/procedures/inputs.ts';
import { router, userMutation, userProcedure } from '../access/procedures/trpc.ts';
import type { StackQueries } from '../stacks/stack-queries.ts';
import type { InvitationService } from './invitation-service.ts';
import type { MemberService } from './member-service.ts';
import { personOf } from './person.ts';

declare module '../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly invitations: InvitationService;
    readonly members: MemberService;
    readonly stackQueries: StackQueries;
  }
}

const Chosen = Type.Object({ organization: Name });

export const meRouter = router({
  get: userProcedure.query(async ({ ctx: { caller, services } }) => ({
    login: caller.login,
    displayName: caller.displayName === '' || caller.displayName === caller.login ? null : caller.displayName,
    isOperator: caller.siteAdmin,
    /** Whether the caller may add other users of the server without their consent. */
    mayAddMembers: await services.members.mayAdd(caller),
    organizations: await services.stackQueries.listOrganizations(caller),
    /** Invitations that the caller has not answered. */
    invitations: caller.userId === null ? 0 : (await services.invitations.listOf({ userId: caller.userId })).length,
    version: holdfastVersion,
    /** Null: it is not. */
    readOnly: services.readOnly.current?.reason ?? null,
  })),

  /** Newest first. */
  invitations: userProcedure.query(async ({ ctx: { caller, services } }) => ({
    items: (await services.invitations.listOf(personOf(caller))).map(
      ({ createdAt, expiresAt, invitedBy, organization, role }) => ({
        ...{ organization, role, invitedBy },
        at: createdAt.toISOString(),
        until: expiresAt.toISOString(),
      }),
    ),
    next: null,
  })),

  accept: userMutation('member.accept')
    .input(input(Chosen))
    .mutation(async ({ ctx: { audit, caller, services }, input: { organization } }) => {
      await services.invitations.accept(personOf(caller), organization, audit);
    }),

  decline: userMutation('member.decline')
    .input(input(Chosen))
    .mutation(async ({ ctx: { audit, caller, services }, input: { organization } }) => {
      await services.invitations.decline(personOf(caller), organization, audit);
    }),

  leave: userMutation('member.leave')
    .input(input(Chosen))
    .mutation(async ({ ctx: { audit, caller, services }, input: { organization } }) => {
      await services.members.leave(personOf(caller), organization, audit);
    }),
});
