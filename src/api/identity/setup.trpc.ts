import { organizationProcedure, router } from '../access/procedures/trpc.ts';
import type { SetupService } from './setup-service.ts';

declare module '../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly setup: SetupService;
  }
}

/** The steps for a team after its first update. */
export const setupRouter = router({
  list: organizationProcedure('manage').query(async ({ ctx: { caller, services }, input: { organization } }) => ({
    items: await services.setup.list(caller, organization),
  })),
});
