import { Type } from 'typebox';
import { decodeCursor, defaultPage, encodeCursor, input, Name, page, text } from '../access/procedures/inputs.ts';
import { organizationProcedure, router } from '../access/procedures/trpc.ts';
import type { ActivityQueries } from './activity-queries.ts';

declare module '../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly activity: ActivityQueries;
  }
}

const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const CursorFields = Type.Tuple([Count, Count]);

const ListInput = Type.Object({
  kind: Type.Optional(
    Type.Union([
      Type.Literal('updates'),
      Type.Literal('previews'),
      Type.Literal('approvals'),
      Type.Literal('freezes'),
      Type.Literal('stacks'),
    ]),
  ),
  /** A login. */
  by: Type.Optional(text(200)),
  project: Type.Optional(Name),
  /** Set only together with the project. */
  stack: Type.Optional(Name),
  ...page,
});

export const activityRouter = router({
  /**
   * The events of the stacks that the caller may read, newest first. A page may be short or empty and still have a next page: the number of
   * scanned events is limited.
   */
  list: organizationProcedure('read')
    .input(input(ListInput))
    .query(async ({ ctx: { caller, services }, input: query }) => {
      const { by, cursor, kind = null, limit = defaultPage, organization, project = null, stack = null } = query;
      const position = decodeCursor(cursor, CursorFields);
      const { items, next } = await services.activity.list(caller, organization, {
        ...{ kind, project, stack: project === null ? null : stack, limit },
        login: by?.trim() || null,
        after: position && { micros: position[0], number: position[1] },
      });
      return { items, next: next && encodeCursor([next.micros, next.number]) };
    }),
});
