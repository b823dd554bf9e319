import { organizationProcedure, router } from './procedures/trpc.ts';
import type { QuotaQueries } from './quota-queries.ts';

declare module './procedures/context.ts' {
  interface ProcedureServices {
    readonly limits: QuotaQueries;
  }
}

/** Operators set the limits. */
export const quotasRouter = router({
  get: organizationProcedure('manage').query(({ ctx: { services }, input: { organization } }) =>
    services.limits.get(organization),
  ),
});
