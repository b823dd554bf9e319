import { Type } from 'typebox';
import { hasPermission } from '../../shared/access/permissions.ts';
import { assertAuthorized } from '../access/authorize-call.ts';
import { decodeCursor, defaultPage, encodeCursor, input, page, StackInput, text } from '../access/procedures/inputs.ts';
import { router, stackProcedure, stackScan, stackScanMutation } from '../access/procedures/trpc.ts';
import { permissionsInPath } from '../access/stack-access.ts';
import type { ManualEdits } from './manual-edits.ts';
import type { StackDiff } from './stack-diff.ts';
import type { StateView } from './state-view.ts';
import { nameIn, type ValueReads } from './value-reads.ts';
import type { VersionService } from './version-service.ts';

declare module '../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly stackDiff: StackDiff;
    readonly manualEdits: ManualEdits;
    readonly stateView: StateView;
    readonly valueReads: ValueReads;
    readonly versions: VersionService;
  }
}

const VersionNumber = Type.Integer({ minimum: 0, maximum: 999_999_999 });
const Version = Type.Integer({ minimum: 1, maximum: 999_999_999 });
const ofRead = { kind: 'stack', permission: 'read' } as const;
const ofSecrets = { kind: 'stack', permission: 'decrypt' } as const;

export const versionsRouter = router({
  /** Newest first. */
  list: stackProcedure('read')
    .input(input(Type.Object({ ...page })))
    .query(async ({ ctx: { services }, input: { cursor, limit = defaultPage, ...ref } }) => {
      const [before] = decodeCursor(cursor, Type.Tuple([VersionNumber])) ?? [null];
      const found = await services.versions.list(ref, before, limit);
      return { ...found, next: found.next === null ? null : encodeCursor([found.next]) };
    }),

  /** 0 is the stack before its first version. Secrets are redacted. The read is recorded. */
  diff: stackScan('read')
    .input(
      input(Type.Object({ from: VersionNumber, to: VersionNumber, typePrefix: Type.Optional(text(200)), ...page })),
    )
    .query(
      async ({
        ctx: { caller, request, scan, services },
        input: { cursor, from, limit = defaultPage, to, typePrefix = '', ...ref },
      }) => {
        const [offset] = decodeCursor(cursor, Type.Tuple([VersionNumber])) ?? [0];
        const found = await services.versions.diff(scan, ref, { from, to, typePrefix, offset, limit });
        if (found.items.length > 0) {
          const read = { view: 'differences', stackVersion: to, comparedWith: from } as const;
          await services.valueReads.record(request.trail(caller, ofRead, 'stack.export'), caller, ref, read);
        }
        return { ...found, next: found.next === null ? null : encodeCursor([found.next]) };
      },
    ),

  /**
   * Paired by type and name, of newest states or of versions. Secrets are redacted. With `secrets`, which needs the permission to decrypt
   * both, the response shows which secrets differ. The reads are recorded.
   */
  diffStacks: stackScan('read')
    .input(
      input(
        Type.Object({
          version: Type.Optional(VersionNumber),
          other: Type.Object({ ...StackInput.properties, version: Type.Optional(VersionNumber) }),
          outputs: Type.Optional(Type.Boolean()),
          secrets: Type.Optional(Type.Boolean()),
          ...page,
        }),
      ),
    )
    .query(async ({ ctx: { caller, request, scan, services }, input: query }) => {
      const { cursor, limit = defaultPage, other, outputs = false, secrets = false, version = null, ...ref } = query;
      const { organization, project, stack, version: otherVersion = null } = other;
      const otherRef = { organization, project, stack };
      const otherCaller = await request.admit(ofRead, otherRef);
      const position = decodeCursor(cursor, Type.Tuple([VersionNumber, VersionNumber, VersionNumber]));
      const [offset, from, to] = position ?? [0, version, otherVersion];
      const mayCompare =
        hasPermission(permissionsInPath(caller, ref), 'decrypt') &&
        hasPermission(permissionsInPath(otherCaller, otherRef), 'decrypt');
      if (secrets && !mayCompare) {
        assertAuthorized(caller, ofSecrets, ref);
        assertAuthorized(otherCaller, ofSecrets, otherRef);
      }
      const found = await services.stackDiff.diff(scan, {
        from: { ref, version: from },
        to: { ref: otherRef, version: to },
        withOutputs: outputs,
        secrets: secrets
          ? {
              from: request.trail(caller, ofSecrets, 'secret.decrypt'),
              to: request.trail(otherCaller, ofSecrets, 'secret.decrypt'),
            }
          : null,
        offset,
        limit,
      });
      for (const [who, of, against, stackVersion] of [
        [caller, ref, otherRef, found.fromVersion],
        [otherCaller, otherRef, ref, found.toVersion],
      ] as const) {
        if (found.items.length === 0) break;
        const read = { view: 'differences', stackVersion, comparedWith: nameIn(of.organization, against) } as const;
        await services.valueReads.record(request.trail(who, ofRead, 'stack.export'), who, of, read);
      }
      const next = found.next === null ? null : encodeCursor([found.next, found.fromVersion, found.toVersion]);
      return { ...found, next, mayCompareSecrets: mayCompare };
    }),

  /** In the order of the state. */
  resources: stackScan('read')
    .input(input(Type.Object({ version: Version, text: Type.Optional(text(500)), ...page })))
    .query(async ({ ctx: { scan, services }, input: { cursor, limit = defaultPage, text: part, version, ...ref } }) => {
      const [offset] = decodeCursor(cursor, Type.Tuple([VersionNumber])) ?? [0];
      const query = { limit, offset, text: part?.trim().toLowerCase() || null };
      const found = await services.stateView.list(scan, ref, version, query);
      return { ...found, next: found.next === null ? null : encodeCursor([found.next]) };
    }),

  /** Without its secrets; null if it is large. The read is recorded. */
  text: stackScan('read')
    .input(input(Type.Object({ version: Version })))
    .query(({ ctx: { caller, request, scan, services }, input: { version, ...ref } }) =>
      services.stateView.text(scan, ref, version, request.trail(caller, ofRead, 'stack.export')),
    ),

  /** Makes the state of a version the newest one, as a new version. `headVersion`: the newest version that the caller has seen. */
  restore: stackScanMutation('write', 'stack.restore')
    .input(input(Type.Object({ version: Version, headVersion: VersionNumber })))
    .mutation(async ({ ctx: { audit, caller, scan, services }, input: { headVersion, version, ...ref } }) => ({
      version: await services.manualEdits.restore(ref, version, { audit, caller, headVersion, scan }),
    })),
});
