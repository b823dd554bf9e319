import { Type } from 'typebox';
import { defaultPage, input, Name, page, text } from '../access/procedures/inputs.ts';
import { router, userProcedure } from '../access/procedures/trpc.ts';
import { decodeSearchCursor, encodeSearchCursor } from './search-cursor.ts';
import type { SearchService } from './search-service.ts';

declare module '../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly search: SearchService;
  }
}

const query = text(1_000);
const Field = Type.Union([
  Type.Literal('type'),
  Type.Literal('stack'),
  Type.Literal('project'),
  Type.Literal('provider'),
]);

/** `isCut`: the search was cut short; `isTrimmed`: there may be stacks that the caller may not read. */
export const searchRouter = router({
  /** Stacks in the order of their names, then type and name. A page that is cut short may have few or no items, and still a `next`. */
  list: userProcedure
    .input(input(Type.Object({ query, organization: Type.Optional(Name), ...page })))
    .query(
      async ({
        ctx: { caller, request, services },
        input: { cursor, limit = defaultPage, organization = null, query: of },
      }) => {
        const after = decodeSearchCursor(cursor);
        const found = await services.search.list(caller, { text: of, organization, after, limit }, request.gone);
        return { ...found, next: found.next && encodeSearchCursor(found.next) };
      },
    ),

  /** The largest groups. */
  count: userProcedure
    .input(input(Type.Object({ query, organization: Type.Optional(Name), by: Field })))
    .query(({ ctx: { caller, request, services }, input: { by, organization = null, query: of } }) =>
      services.search.count(caller, { text: of, organization, by }, request.gone),
    ),

  /** Includes the number of stacks with each version. */
  providers: userProcedure
    .input(input(Type.Object({ organization: Type.Optional(Name) })))
    .query(({ ctx: { caller, request, services }, input: { organization = null } }) =>
      services.search.providers(caller, organization, request.gone),
    ),
});
