import { Type } from 'typebox';
import { Id, input } from '../access/procedures/inputs.ts';
import { router, stackProcedure } from '../access/procedures/trpc.ts';
import type { StatisticsService } from './statistics-service.ts';

declare module '../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly statistics: StatisticsService;
  }
}

/** The statistics of an update. */
export const statisticsRouter = router({
  /** How long its steps took, what is usual, which policy packs checked it, and which outputs it removed that others may read. */
  statistics: stackProcedure('read')
    .input(input(Type.Object({ updateId: Id })))
    .query(({ ctx: { caller, services }, input: { updateId, ...ref } }) =>
      services.statistics.show(ref, updateId, caller),
    ),
});
