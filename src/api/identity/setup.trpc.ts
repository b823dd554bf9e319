import { organizationProcedure, router } from '../access/procedures/trpc.ts';
import type { SetupService } from './setup-service.ts';

declare module '../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly setup: SetupService;
  }
}

export const setupRouter = router({
  list: organizationProcedure('manage').query(async ({ ctx: { caller, services }, input: { organization } }) => ({
    items: await services.setup.list(caller, organization),
  })),
});
