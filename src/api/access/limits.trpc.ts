import type { LimitQueries } from './limit-queries.ts';
import { organizationProcedure, router } from './procedures/trpc.ts';

declare module './procedures/context.ts' {
  interface ProcedureServices {
    readonly limits: LimitQueries;
  }
}

/** Limits that operators set. */
export const limitsRouter = router({
  /** What the organization may use, and what it uses. */
  get: organizationProcedure('manage').query(({ ctx: { services }, input: { organization } }) =>
    services.limits.get(organization),
  ),
});
