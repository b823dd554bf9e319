import { Type } from 'typebox';
import { Id, input } from '../access/procedures/inputs.ts';
import { router, stackProcedure } from '../access/procedures/trpc.ts';
import type { StatisticsService } from './statistics-service.ts';

declare module '../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly statistics: StatisticsService;
  }
}

export const statisticsRouter = router({
  /** Includes policy packs that checked the update, and removed outputs that other stacks may read. */
  statistics: stackProcedure('read')
    .input(input(Type.Object({ updateId: Id })))
    .query(({ ctx: { caller, services }, input: { updateId, ...ref } }) =>
      services.statistics.show(ref, updateId, caller),
    ),

  /** Durations, times in the queue and resources in the last 90 days. */
  trend: stackProcedure('read').query(({ ctx: { services }, input: ref }) => services.statistics.listTrend(ref)),
});
