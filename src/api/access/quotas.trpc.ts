import { organizationProcedure, router } from './procedures/trpc.ts';
import type { LimitQueries } from './quota-queries.ts';

declare module './procedures/context.ts' {
  interface ProcedureServices {
    readonly limits: LimitQueries;
  }
}

/** Limits that operators set. */
export const limitsRouter = router({
  /** Limits and usage of the organization. */
  get: organizationProcedure('manage').query(({ ctx: { services }, input: { organization } }) =>
    services.limits.get(organization),
  ),
});
