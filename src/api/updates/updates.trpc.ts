import { Type } from 'typebox';
import { InvalidRequestError } from '../../shared/platform/errors/errors.ts';
import { decodeCursor, defaultPage, encodeCursor, Id, input, page, text } from '../access/procedures/inputs.ts';
import { router, stackMutation, stackProcedure } from '../access/procedures/trpc.ts';
import type { DrainService } from './drain-service.ts';
import type { UpdateQueries } from './update-queries.ts';
import type { UpdateService } from './update-service.ts';

declare module '../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly changeLimits: DrainService;
    readonly updateQueries: UpdateQueries;
    readonly updates: UpdateService;
  }
}

const Numbered = Type.Tuple([Type.Integer({ minimum: -1, maximum: Number.MAX_SAFE_INTEGER })]);
const Version = Type.Integer({ minimum: 1, maximum: 999_999_999 });
const chosen = { updateId: Id };

export const updatesRouter = router({
  /** Newest first. */
  list: stackProcedure('read')
    .input(input(Type.Object({ previews: Type.Optional(Type.Boolean()), beforeId: Type.Optional(Id), ...page })))
    .query(
      async ({ ctx: { services }, input: { beforeId, cursor, limit = defaultPage, previews = false, ...ref } }) => {
        const [before] = decodeCursor(cursor, Numbered) ?? [null];
        const { items, next } = await services.updateQueries.list(ref, { before, beforeId, limit, previews });
        return { items, next: next === null ? null : encodeCursor([next]) };
      },
    ),

  get: stackProcedure('read')
    .input(input(Type.Object({ updateId: Type.Optional(Id), version: Type.Optional(Version) })))
    .query(({ ctx: { services }, input: { updateId, version, ...ref } }) => {
      if ((updateId === undefined) === (version === undefined))
        throw new InvalidRequestError('input must have either updateId or version');
      return services.updateQueries.get(
        ref,
        updateId === undefined ? { version: version as number } : { id: updateId },
      );
    }),

  /** Ends an update at once. Its saved state is kept. */
  cancel: stackMutation('preview', 'update.cancel')
    .meta({ whileReadOnly: 'running updates end sooner' })
    .input(input(Type.Object(chosen)))
    .mutation(async ({ ctx: { audit, caller, services }, input: { updateId, ...ref } }) => {
      await services.updates.cancel(ref, updateId, caller, audit);
    }),

  /** The update starts no new steps, and finishes the ones in progress. */
  drain: stackMutation('write', 'update.drain')
    .meta({ whileReadOnly: 'running updates end sooner' })
    .input(input(Type.Object({ ...chosen, reason: Type.Optional(text(500)) })))
    .mutation(async ({ ctx: { audit, caller, services }, input: { reason = '', updateId, ...ref } }) => {
      await services.changeLimits.drain(ref, updateId, caller, reason, audit);
    }),
});
