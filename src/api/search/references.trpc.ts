import { organizationProcedure, router, stackProcedure } from '../access/procedures/trpc.ts';
import type { ReferenceService } from './reference-service.ts';

declare module '../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly references: ReferenceService;
  }
}

/** References to the outputs of other stacks. */
export const referencesRouter = router({
  /** References of at most 500 stacks. */
  graph: organizationProcedure('read').query(({ ctx: { caller, services }, input: { organization } }) =>
    services.references.graph(caller, organization),
  ),

  /** The stacks that a stack reads, and those that read it. */
  ofStack: stackProcedure('read').query(({ ctx: { caller, services }, input: ref }) =>
    services.references.ofStack(caller, ref),
  ),
});
