import { Type } from 'typebox';
import { decodeCursor, defaultPage, encodeCursor, Id, input, Name, page, text } from '../access/procedures/inputs.ts';
import { organizationProcedure, router } from '../access/procedures/trpc.ts';
import type { CiQueries } from './ci-queries.ts';
import type { DeliveryQueries } from './delivery-queries.ts';

declare module '../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly ciQueries: CiQueries;
    readonly deliveryQueries: DeliveryQueries;
  }
}

const Days = Type.Union([Type.Literal(7), Type.Literal(30), Type.Literal(90)]);
const Micros = Type.String({ pattern: '^\\d{1,17}$' });
const RefusedPosition = Type.Tuple([Micros, Type.String({ pattern: '^\\d{1,18}$' })]);
const DriftPosition = Type.Tuple([Micros, Id]);

/** Results of runs on stacks that the caller may read. */
export const ciRouter = router({
  /** Runs, failures, time in the queue and refusals, by day and by project. */
  statistics: organizationProcedure('read')
    .input(input(Type.Object({ days: Days })))
    .query(({ ctx: { caller, services }, input: { days, organization } }) =>
      services.ciQueries.sum(caller, organization, days),
    ),

  /** Change rate, failure rate, lead time and time to restore, by project. */
  delivery: organizationProcedure('read')
    .input(input(Type.Object({ days: Days })))
    .query(({ ctx: { caller, services }, input: { days, organization } }) =>
      services.deliveryQueries.sum(caller, organization, days),
    ),

  /** Refused, evicted from the queue, or stopped by a rule; the newest first. */
  refusals: organizationProcedure('read')
    .input(
      input(
        Type.Object({
          days: Days,
          reasons: Type.Optional(Type.Array(text(50), { minItems: 1, maxItems: 20 })),
          project: Type.Optional(Name),
          ...page,
        }),
      ),
    )
    .query(async ({ ctx: { caller, services }, input: query }) => {
      const { cursor, days, limit = defaultPage, organization, project = null, reasons = null } = query;
      const after = decodeCursor(cursor, RefusedPosition);
      const { items, next } = await services.ciQueries.listRefused(caller, organization, {
        ...{ after, days, limit, project, reasons },
      });
      return { items, next: next && encodeCursor(next) };
    }),

  /** Includes stacks whose drift was resolved; the newest first. */
  drift: organizationProcedure('read')
    .input(input(Type.Object({ days: Days, onlyDrifted: Type.Optional(Type.Boolean()), ...page })))
    .query(async ({ ctx: { caller, services }, input: query }) => {
      const { cursor, days, limit = defaultPage, onlyDrifted = false, organization } = query;
      const after = decodeCursor(cursor, DriftPosition);
      const { items, next } = await services.ciQueries.listDrifted(caller, organization, {
        ...{ after, days, limit, onlyDrifted },
      });
      return { items, next: next && encodeCursor(next) };
    }),
});
