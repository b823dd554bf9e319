import { Type } from 'typebox';
import {
  decodeCursor,
  defaultPage,
  encodeCursor,
  Id,
  input,
  Name,
  page,
  text,
} from '../../access/procedures/inputs.ts';
import { organizationProcedure, router, stackMutation } from '../../access/procedures/trpc.ts';
import type { UpdateQueries } from '../update-queries.ts';
import type { QueueService } from './queue-service.ts';

declare module '../../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly queue: QueueService;
    readonly updateQueries: UpdateQueries;
  }
}

const CursorFields = Type.Tuple([Name, Name, Name, Type.Integer({ minimum: 0, maximum: 1_000_000_000 })]);

export const queueRouter = router({
  /** By stack and position. */
  list: organizationProcedure('read')
    .input(input(Type.Object({ project: Type.Optional(Name), stack: Type.Optional(Name), ...page })))
    .query(async ({ ctx: { caller, services }, input: query }) => {
      const { cursor, limit = defaultPage, organization, project = null, stack = null } = query;
      const after = decodeCursor(cursor, CursorFields);
      const { items, next } = await services.updateQueries.listQueue(
        caller,
        { organization, project, stack },
        after,
        limit,
      );
      return { items, next: next && encodeCursor(next) };
    }),

  evict: stackMutation('write', 'update.evict')
    .input(input(Type.Object({ placeId: Id, reason: Type.Optional(text(200)) })))
    .mutation(async ({ ctx: { audit, caller, services }, input: { placeId, reason = '', ...ref } }) => {
      await services.queue.evict(ref, caller, { placeId, reason }, audit);
    }),
});
