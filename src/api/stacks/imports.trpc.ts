import { Type } from 'typebox';
import { decodeCursor, defaultPage, encodeCursor, Id, input, page } from '../access/procedures/inputs.ts';
import { organizationProcedure, router } from '../access/procedures/trpc.ts';
import type { ImportRuns } from './import-runs.ts';

declare module '../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly importRuns: ImportRuns;
  }
}

const NumberPosition = Type.Tuple([Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })]);
const NamePosition = Type.Tuple([Type.String({ maxLength: 1_000, pattern: '^[^\\u0000]*$' })]);

export const importsRouter = router({
  /** The newest first. */
  list: organizationProcedure('manage')
    .input(input(Type.Object(page)))
    .query(async ({ ctx: { services }, input: { cursor, limit = defaultPage, organization } }) => {
      const position = decodeCursor(cursor, NumberPosition);
      const { items, next } = await services.importRuns.list(organization, position?.[0] ?? null, limit);
      return { items, next: next === null ? null : encodeCursor([next]) };
    }),

  get: organizationProcedure('manage')
    .input(input(Type.Object({ id: Id })))
    .query(({ ctx: { services }, input: { id, organization } }) => services.importRuns.get(organization, id)),

  /** The results of a run by stack name. */
  stacks: organizationProcedure('manage')
    .input(input(Type.Object({ id: Id, ...page })))
    .query(async ({ ctx: { services }, input: { cursor, id, limit = defaultPage, organization } }) => {
      const position = decodeCursor(cursor, NamePosition);
      const { items, next } = await services.importRuns.listStacks(organization, id, position?.[0] ?? null, limit);
      return { items, next: next === null ? null : encodeCursor([next]) };
    }),
});
