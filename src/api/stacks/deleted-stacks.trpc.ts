import { Type } from 'typebox';
import { defaultPage, Id, input, Name, page } from '../access/procedures/inputs.ts';
import { organizationMutation, organizationProcedure, router } from '../access/procedures/trpc.ts';
import type { DeletedStacks } from './deleted-stacks.ts';

declare module '../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly deletedStacks: DeletedStacks;
  }
}

export const deletedStacksRouter = router({
  /** The last deleted stack first. */
  list: organizationProcedure('manage')
    .input(input(Type.Object(page)))
    .query(({ ctx: { services }, input: { cursor = null, limit = defaultPage, organization } }) =>
      services.deletedStacks.list(organization, cursor, limit),
    ),

  /** Omitted names stay unchanged. */
  restore: organizationMutation('manage', 'stack.undelete')
    .input(input(Type.Object({ id: Id, project: Type.Optional(Name), stack: Type.Optional(Name) })))
    .mutation(({ ctx: { audit, caller, services }, input: { project = null, stack = null, ...target } }) =>
      services.deletedStacks.restore(caller, target, { project, stack }, audit),
    ),

  /** Ends the time in which the stack can be restored. */
  purge: organizationMutation('manage', 'stack.purge')
    .input(input(Type.Object({ id: Id })))
    .mutation(async ({ ctx: { audit, caller, services }, input: target }) => {
      await services.deletedStacks.purge(caller, target, audit);
    }),
});
