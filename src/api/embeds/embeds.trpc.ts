import { Type } from 'typebox';
import { Id, input } from '../access/procedures/inputs.ts';
import {
  organizationMutation,
  organizationProcedure,
  router,
  stackMutation,
  stackProcedure,
} from '../access/procedures/trpc.ts';
import type { EmbedService } from './embed-service.ts';

declare module '../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly embeds: EmbedService;
  }
}

const Kind = Type.Union([Type.Literal('badge'), Type.Literal('feed')]);

/** Only the response to the creation contains the token. */
export const embedsRouter = router({
  ofStack: stackProcedure('write').query(async ({ ctx: { services }, input: ref }) => ({
    items: (await services.embeds.list(ref)).map(toItem),
  })),

  createOfStack: stackMutation('write', 'embed.create')
    .input(input(Type.Object({ kind: Kind })))
    .mutation(({ ctx: { audit, caller, services }, input: { kind, ...ref } }) =>
      services.embeds.create(caller, ref, kind, audit),
    ),

  revokeOfStack: stackMutation('write', 'embed.revoke')
    .input(input(Type.Object({ id: Id })))
    .mutation(({ ctx: { audit, caller, services }, input: { id, ...ref } }) =>
      services.embeds.revoke(caller, ref, id, audit),
    ),

  list: organizationProcedure('manage').query(async ({ ctx: { services }, input: { organization } }) => ({
    items: (await services.embeds.list({ organization })).map(toItem),
  })),

  create: organizationMutation('manage', 'embed.create').mutation(
    ({ ctx: { audit, caller, services }, input: { organization } }) =>
      services.embeds.create(caller, { organization }, 'feed', audit),
  ),

  revoke: organizationMutation('manage', 'embed.revoke')
    .input(input(Type.Object({ id: Id })))
    .mutation(({ ctx: { audit, caller, services }, input: { id, organization } }) =>
      services.embeds.revoke(caller, { organization }, id, audit),
    ),
});

function toItem({ createdAt, ...row }: Awaited<ReturnType<EmbedService['list']>>[number]) {
  return { ...row, createdAt: createdAt.toISOString() };
}
