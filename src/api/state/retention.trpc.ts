import { Type } from 'typebox';
import { input, Revision, text } from '../access/procedures/inputs.ts';
import { router, stackMutation, stackProcedure } from '../access/procedures/trpc.ts';
import { seenByField } from '../platform/edits/revisions.ts';
import { type RetentionService, revisionOfHold } from './retention-service.ts';

declare module '../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly retention: RetentionService;
  }
}

const Version = Type.Integer({ minimum: 1, maximum: 999_999_999 });

/** Exemptions from the rules about retention. */
export const retentionRouter = router({
  findHold: stackProcedure('read').query(async ({ ctx: { services }, input: ref }) => {
    const hold = await services.retention.findHold(ref);
    return (
      hold && {
        by: hold.heldBy,
        at: hold.heldAt.toISOString(),
        reason: hold.reason,
        revision: revisionOfHold(hold),
      }
    );
  }),

  /** Places a hold, unless there is one. */
  hold: stackMutation('manage', 'stack.hold')
    .input(input(Type.Object({ reason: text(1_000) })))
    .mutation(({ ctx: { audit, caller, services }, input: { reason, ...ref } }) =>
      services.retention.hold(caller, ref, reason, audit, [revisionOfHold(null)]),
    ),

  /** Ends the hold that the user has seen. */
  release: stackMutation('manage', 'stack.release')
    .input(input(Type.Object({ revision: Revision })))
    .mutation(({ ctx: { audit, caller, services }, input: { revision, ...ref } }) =>
      services.retention.release(caller, ref, audit, seenByField(revision)),
    ),

  pin: stackMutation('write', 'version.pin')
    .input(input(Type.Object({ version: Version })))
    .mutation(({ ctx: { audit, caller, services }, input: { version, ...ref } }) =>
      services.retention.pin(caller, ref, version, true, audit),
    ),

  unpin: stackMutation('write', 'version.unpin')
    .input(input(Type.Object({ version: Version })))
    .mutation(({ ctx: { audit, caller, services }, input: { version, ...ref } }) =>
      services.retention.pin(caller, ref, version, false, audit),
    ),
});
