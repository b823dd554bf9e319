import { Type } from 'typebox';
import { decodeCursor, defaultPage, encodeCursor, input, page } from './inputs.ts';
import { router, stackProcedure } from './trpc.ts';

const VersionNumber = Type.Integer({ minimum: 0, maximum: 999_999_999 });

/** Versions of a stack. */
export const versionsRouter = router({
  /** Newest first. */
  list: stackProcedure('read')
    .input(input(Type.Object({ ...page })))
    .query(async ({ ctx: { services }, input: { cursor, limit = defaultPage, ...ref } }) => {
      const [before] = decodeCursor(cursor, Type.Tuple([VersionNumber])) ?? [null];
      const found = await services.versions.list(ref, before, limit);
      return { ...found, next: found.next === null ? null : encodeCursor([found.next]) };
    }),

  /** Resources that differ between two versions; 0 is the stack before its first one. Secrets are sealed. */
  diff: stackProcedure('read')
    .input(input(Type.Object({ from: VersionNumber, to: VersionNumber, ...page })))
    .query(async ({ ctx: { services }, input: { cursor, from, limit = defaultPage, to, ...ref } }) => {
      const [offset] = decodeCursor(cursor, Type.Tuple([VersionNumber])) ?? [0];
      const found = await services.versions.diff(ref, { from, to, offset, limit });
      return { ...found, next: found.next === null ? null : encodeCursor([found.next]) };
    }),
});
