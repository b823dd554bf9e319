import { Type } from 'typebox';
import { InvalidRequestError } from '../../shared/platform/errors/errors.ts';
import { decodeCursor, defaultPage, encodeCursor, Id, input, page, text } from '../access/procedures/inputs.ts';
import { router, stackMutation, stackProcedure } from '../access/procedures/trpc.ts';
import type { EventService } from '../events/event-service.ts';
import type { FigureService } from '../statistics/figure-service.ts';
import type { GuardService } from './approvals/guard-service.ts';
import type { UpdateBoard } from './update-board.ts';
import type { UpdateService } from './update-service.ts';

declare module '../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly events: EventService;
    readonly figures: FigureService;
    readonly guards: GuardService;
    readonly updateBoard: UpdateBoard;
    readonly updates: UpdateService;
  }
}

const Numbered = Type.Tuple([Type.Integer({ minimum: -1, maximum: Number.MAX_SAFE_INTEGER })]);
const Version = Type.Integer({ minimum: 1, maximum: 999_999_999 });
const chosen = { updateId: Id };

/** Updates of a stack. */
export const updatesRouter = router({
  /** Newest first. */
  list: stackProcedure('read')
    .input(input(Type.Object({ previews: Type.Optional(Type.Boolean()), ...page })))
    .query(async ({ ctx: { services }, input: { cursor, limit = defaultPage, previews = false, ...ref } }) => {
      const [before] = decodeCursor(cursor, Numbered) ?? [null];
      const { items, next } = await services.updateBoard.list(ref, { before, limit, previews });
      return { items, next: next === null ? null : encodeCursor([next]) };
    }),

  /** The one with this id, or that has made this version. */
  get: stackProcedure('read')
    .input(input(Type.Object({ updateId: Type.Optional(Id), version: Type.Optional(Version) })))
    .query(({ ctx: { services }, input: { updateId, version, ...ref } }) => {
      if ((updateId === undefined) === (version === undefined))
        throw new InvalidRequestError('input must have either updateId or version');
      return services.updateBoard.get(ref, updateId === undefined ? { version: version as number } : { id: updateId });
    }),

  /** How long its steps took, what is usual, which policy packs checked it, and which outputs it removed that others may read. */
  figures: stackProcedure('read')
    .input(input(Type.Object(chosen)))
    .query(({ ctx: { caller, services }, input: { updateId, ...ref } }) =>
      services.figures.show(ref, updateId, caller),
    ),

  /** Events of the engine. `resume` is the cursor from which what comes later can be read; `isActive`: more may come. */
  events: stackProcedure('read')
    .input(
      input(
        Type.Object({
          updateId: Id,
          newestFirst: Type.Optional(Type.Boolean()),
          urn: Type.Optional(text(4_000)),
          type: Type.Optional(text(100)),
          ...page,
        }),
      ),
    )
    .query(async ({ ctx: { services }, input: query }) => {
      const { cursor, limit = defaultPage, newestFirst = false, type, updateId, urn, ...ref } = query;
      const [beyond] = decodeCursor(cursor, Numbered) ?? [newestFirst ? Number.MAX_SAFE_INTEGER : -1];
      // Before the page is read: events that come in between would be missing from it.
      const update = await services.events.find(updateId, ref);
      const selection = { beyond, newestFirst, urn: urn ?? null, types: type === undefined ? null : [type] };
      const { isCut, items } = await services.events.listPage(update, selection, limit);
      const resume = encodeCursor([items.at(-1)?.sequence ?? beyond]);
      return { items, next: isCut ? resume : null, resume, isActive: update.isActive };
    }),

  /** Ends an update at once. What it has written is kept. */
  cancel: stackMutation('preview', 'update.cancel')
    .input(input(Type.Object(chosen)))
    .mutation(async ({ ctx: { audit, caller, services }, input: { updateId, ...ref } }) => {
      await services.updates.cancel(ref, updateId, caller, audit);
    }),

  /** Lets an update begin nothing more, and finish what it has begun. */
  drain: stackMutation('write', 'update.drain')
    .input(input(Type.Object({ ...chosen, reason: Type.Optional(text(500)) })))
    .mutation(async ({ ctx: { audit, caller, services }, input: { reason = '', updateId, ...ref } }) => {
      await services.guards.drain(ref, updateId, caller, reason, audit);
    }),
});
