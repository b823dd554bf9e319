import { Type } from 'typebox';
import { decodeCursor, defaultPage, encodeCursor, Id, input, page, text } from '../../access/procedures/inputs.ts';
import { organizationProcedure, router, stackMutation, stackProcedure } from '../../access/procedures/trpc.ts';
import type { ApprovalQueries } from './approval-queries.ts';
import type { ApprovalService } from './approval-service.ts';

declare module '../../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly approvalQueries: ApprovalQueries;
    readonly approvals: ApprovalService;
  }
}

const CursorFields = Type.Tuple([Type.String({ pattern: '^\\d{1,17}$' }), Type.String({ format: 'uuid' })]);

const List = Type.Object({
  /** True: only given approvals; false: only pending ones. */
  given: Type.Optional(Type.Boolean()),
  ...page,
});

export const approvalsRouter = router({
  list: organizationProcedure('read')
    .input(input(List))
    .query(async ({ ctx: { caller, services }, input: { cursor, given, limit = defaultPage, organization } }) => {
      const target = { organization, project: null, stack: null };
      const query = { ...target, isGiven: given ?? null, before: positionOf(cursor), limit };
      const { items, next } = await services.approvalQueries.list(caller, query);
      return { items, next: next && encodeCursor([next.askedMicros, next.id]) };
    }),

  ofStack: stackProcedure('read')
    .input(input(Type.Object({ ...List.properties, commit: Type.Optional(text(100)) })))
    .query(async ({ ctx: { caller, services }, input: { cursor, given, limit = defaultPage, ...ref } }) => {
      const query = { ...ref, isGiven: given ?? null, before: positionOf(cursor), limit };
      const { items, next } = await services.approvalQueries.list(caller, query);
      return { items, next: next && encodeCursor([next.askedMicros, next.id]) };
    }),

  ask: stackMutation('write', 'approval.ask')
    .input(
      input(
        Type.Object({
          /** The full hash. */
          commit: text(100),
          kind: Type.Optional(text(20)),
          reason: Type.Optional(text(500)),
        }),
      ),
    )
    .mutation(async ({ ctx: { audit, caller, services }, input: { commit, kind = 'update', reason = '', ...ref } }) => {
      const { id } = await services.approvals.ask(ref, caller, { commit, kind, reason }, audit);
      return { id };
    }),

  give: stackMutation('admin', 'approval.give')
    .input(
      input(
        Type.Object({
          approvalId: Id,
          reason: text(500),
          minutes: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_080 })),
        }),
      ),
    )
    .mutation(async ({ ctx: { audit, caller, services }, input: { approvalId, minutes, reason, ...ref } }) => {
      await services.approvals.give(ref, approvalId, caller, { reason, minutes }, audit);
    }),

  withdraw: stackMutation('write', 'approval.withdraw')
    .input(input(Type.Object({ approvalId: Id })))
    .mutation(async ({ ctx: { audit, caller, services }, input: { approvalId, ...ref } }) => {
      await services.approvals.withdraw(ref, approvalId, caller, audit);
    }),
});

function positionOf(cursor: string | null | undefined) {
  const position = decodeCursor(cursor, CursorFields);
  return position && { askedMicros: position[0], id: position[1] };
}
