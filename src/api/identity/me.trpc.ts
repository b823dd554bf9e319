import { holdfastVersion } from '../../shared/platform/config/config.ts';
import { router, userProcedure } from '../access/procedures/trpc.ts';
import type { StackBoard } from '../stacks/stack-board.ts';
import type { MemberService } from './member-service.ts';

declare module '../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly members: MemberService;
    readonly stackBoard: StackBoard;
  }
}

/** The caller. */
export const meRouter = router({
  get: userProcedure.query(async ({ ctx: { caller, services } }) => ({
    login: caller.login,
    displayName: caller.displayName === '' || caller.displayName === caller.login ? null : caller.displayName,
    isOperator: caller.siteAdmin,
    /** Whether the caller may make other users of the server members of organizations that they administer. */
    mayAddMembers: services.members.mayAdd(caller),
    organizations: await services.stackBoard.listOrganizations(caller),
    version: holdfastVersion,
  })),
});
