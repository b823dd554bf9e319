import { organizationProcedure, router } from './procedures/trpc.ts';
import type { QuotaQueries } from './quota-queries.ts';

declare module './procedures/context.ts' {
  interface ProcedureServices {
    readonly limits: QuotaQueries;
  }
}

/** Limits set by operators. */
export const quotasRouter = router({
  /** Limits and usage of the organization. */
  get: organizationProcedure('manage').query(({ ctx: { services }, input: { organization } }) =>
    services.limits.get(organization),
  ),
});
