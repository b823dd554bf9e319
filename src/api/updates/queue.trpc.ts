import { Type } from 'typebox';
import { decodeCursor, defaultPage, encodeCursor, input, Name, page } from '../access/procedures/inputs.ts';
import { organizationProcedure, router } from '../access/procedures/trpc.ts';
import type { UpdateQueries } from './update-queries.ts';

declare module '../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly updateQueries: UpdateQueries;
  }
}

const CursorFields = Type.Tuple([Name, Name, Name, Type.Integer({ minimum: 0, maximum: 1_000_000_000 })]);

/** Runs that hold a stack or wait for one. */
export const queueRouter = router({
  /** Of an organization, a project or a stack, as far as the caller may read the stacks; by stack and position. */
  list: organizationProcedure('read')
    .input(input(Type.Object({ project: Type.Optional(Name), stack: Type.Optional(Name), ...page })))
    .query(async ({ ctx: { caller, services }, input: query }) => {
      const { cursor, limit = defaultPage, organization, project = null, stack = null } = query;
      const after = decodeCursor(cursor, CursorFields);
      const { items, next } = await services.updateQueries.listQueue(
        caller,
        { organization, project, stack },
        after,
        limit,
      );
      return { items, next: next && encodeCursor(next) };
    }),
});
