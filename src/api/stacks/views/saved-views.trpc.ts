import { Type } from 'typebox';
import { Id, input } from '../../access/procedures/inputs.ts';
import { organizationMutation, organizationProcedure, router, userProcedure } from '../../access/procedures/trpc.ts';
import { ViewedPage, ViewName } from './saved-view.ts';
import type { SavedViews } from './saved-views.ts';

declare module '../../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly savedViews: SavedViews;
  }
}

export const savedViewsRouter = router({
  /** Own and shared views; few enough for one page. */
  list: organizationProcedure('read').query(async ({ ctx: { caller, services }, input: { organization } }) => ({
    items: await services.savedViews.list(caller, organization),
    next: null,
  })),

  everywhere: userProcedure.query(async ({ ctx: { caller, services } }) => ({
    items: await services.savedViews.listEverywhere(caller),
    next: null,
  })),

  create: organizationMutation('read', 'view.create')
    .input(input(Type.Object({ name: ViewName, isShared: Type.Boolean(), viewed: ViewedPage })))
    .mutation(async ({ ctx: { audit, caller, services }, input: { organization, ...view } }) => ({
      id: await services.savedViews.create(caller, organization, view, audit),
    })),

  change: organizationMutation('read', 'view.change')
    .input(
      input(
        Type.Object({
          id: Id,
          name: Type.Optional(ViewName),
          isShared: Type.Optional(Type.Boolean()),
          viewed: Type.Optional(ViewedPage),
        }),
      ),
    )
    .mutation(async ({ ctx: { audit, caller, services }, input: { organization, ...change } }) => {
      await services.savedViews.change(caller, organization, change, audit);
    }),

  pin: organizationMutation('read', 'view.change')
    .input(input(Type.Object({ id: Id, isPinned: Type.Boolean() })))
    .mutation(async ({ ctx: { audit, caller, services }, input: { id, isPinned, organization } }) => {
      await services.savedViews.pin(caller, organization, id, isPinned, audit);
    }),

  remove: organizationMutation('read', 'view.remove')
    .input(input(Type.Object({ id: Id })))
    .mutation(async ({ ctx: { audit, caller, services }, input: { id, organization } }) => {
      await services.savedViews.remove(caller, organization, id, audit);
    }),
});
