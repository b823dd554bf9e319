import { Type } from 'typebox';
import { decodeCursor, defaultPage, encodeCursor, Id, input, page, text } from '../access/procedures/inputs.ts';
import { router, stackProcedure } from '../access/procedures/trpc.ts';
import type { EventQueries } from './event-queries.ts';

declare module '../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly events: EventQueries;
  }
}

const Numbered = Type.Tuple([Type.Integer({ minimum: -1, maximum: Number.MAX_SAFE_INTEGER })]);

export const eventsRouter = router({
  /** `resume` is the cursor for reading later events; `isActive`: more may arrive. */
  events: stackProcedure('read')
    .input(
      input(
        Type.Object({
          updateId: Id,
          newestFirst: Type.Optional(Type.Boolean()),
          urn: Type.Optional(text(4_000)),
          type: Type.Optional(text(100)),
          ...page,
        }),
      ),
    )
    .query(async ({ ctx: { services }, input: query }) => {
      const { cursor, limit = defaultPage, newestFirst = false, type, updateId, urn, ...ref } = query;
      const [beyond] = decodeCursor(cursor, Numbered) ?? [newestFirst ? Number.MAX_SAFE_INTEGER : -1];
      // Read before the page, which would otherwise lack events that arrive in between.
      const update = await services.events.find(updateId, ref);
      const selection = { beyond, newestFirst, urn: urn ?? null, types: type === undefined ? null : [type] };
      const { isCut, items } = await services.events.listPage(update, selection, limit);
      const resume = encodeCursor([items.at(-1)?.sequence ?? beyond]);
      return { items, next: isCut ? resume : null, resume, isActive: update.isActive };
    }),
});
