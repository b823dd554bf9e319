import { Type } from 'typebox';
import { decodeCursor, defaultPage, encodeCursor, input, Name, page } from '../access/procedures/inputs.ts';
import { organizationMutation, organizationProcedure, router } from '../access/procedures/trpc.ts';
import type { PolicyGroupService, SeenPack } from './policy-group-service.ts';
import type { PolicyQueries } from './policy-queries.ts';

declare module '../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly policyQueries: PolicyQueries;
    readonly policyGroups: PolicyGroupService;
  }
}

const Named = Type.Tuple([Name]);
const GroupPosition = Type.Tuple([Name, Type.Union([Type.Literal(0), Type.Literal(1)])]);
const StackPosition = Type.Tuple([Name, Name]);

const group = { group: Name };
/** Null: no version was enabled. */
const seen = Type.Optional(Type.Union([Name, Type.Null()]));
const StackName = Type.Object({ project: Name, stack: Name });

/** Groups define which updates must run which packs. */
export const policiesRouter = router({
  /** Packs by name. */
  packs: organizationProcedure('read')
    .input(input(Type.Object(page)))
    .query(async ({ ctx: { services }, input: { cursor, limit = defaultPage, organization } }) => {
      const [after] = decodeCursor(cursor, Named) ?? [null];
      const { items, next } = await services.policyQueries.listPacks(organization, after, limit);
      return { items, next: next && encodeCursor([next]) };
    }),

  /** By name, the default group first: it has all stacks that are in no other group. */
  groups: organizationProcedure('read')
    .input(input(Type.Object(page)))
    .query(async ({ ctx: { caller, services }, input: { cursor, limit = defaultPage, organization } }) => {
      const position = decodeCursor(cursor, GroupPosition);
      const after = position && { name: position[0], isDefault: position[1] === 1 };
      const { items, next } = await services.policyQueries.listGroups(caller, organization, after, limit);
      return { items, next: next && encodeCursor([next.name, next.isDefault ? 1 : 0]) };
    }),

  group: organizationProcedure('read')
    .input(input(Type.Object(group)))
    .query(({ ctx: { services }, input: { group: name, organization } }) =>
      services.policyQueries.getGroup(organization, name),
    ),

  /** Lists only stacks that the caller may read. */
  groupStacks: organizationProcedure('read')
    .input(input(Type.Object({ ...group, ...page })))
    .query(async ({ ctx: { caller, services }, input: query }) => {
      const { cursor, group: name, limit = defaultPage, organization } = query;
      const position = decodeCursor(cursor, StackPosition);
      const after = position && { project: position[0], stack: position[1] };
      const { items, next } = await services.policyQueries.listStacks(caller, { organization, name }, after, limit);
      return { items, next: next && encodeCursor([next.project, next.stack]) };
    }),

  createGroup: organizationMutation('manage', 'policy-group.create')
    .input(input(Type.Object(group)))
    .mutation(async ({ ctx: { audit, caller, services }, input: { group: name, organization } }) => {
      await services.policyGroups.create(organization, caller, { name }, audit);
    }),

  /** Makes all changes, or none. */
  changeGroup: organizationMutation('manage', 'policy-group.change')
    .input(
      input(
        Type.Object({
          ...group,
          addStack: Type.Optional(StackName),
          removeStack: Type.Optional(StackName),
          /** Takes the place of another version. Without `tag`, the newest version; without `config`, the configuration stays. */
          enable: Type.Optional(
            Type.Object({
              pack: Name,
              tag: Type.Optional(Name),
              config: Type.Optional(Type.Object({}, { additionalProperties: true })),
              seen,
            }),
          ),
          disable: Type.Optional(Type.Object({ pack: Name, seen })),
        }),
      ),
    )
    .mutation(async ({ ctx: { audit, caller, services }, input: change }) => {
      const { addStack, disable, enable, group: name, organization, removeStack } = change;
      await services.policyGroups.update(
        { organization, name },
        caller,
        [
          {
            ...(addStack ? { addStack: { name: addStack.stack, routingProject: addStack.project } } : {}),
            ...(removeStack ? { removeStack: { name: removeStack.stack, routingProject: removeStack.project } } : {}),
            ...(enable
              ? { addPolicyPack: { name: enable.pack, versionTag: enable.tag ?? null, config: enable.config ?? null } }
              : {}),
            ...(disable ? { removePolicyPack: { name: disable.pack } } : {}),
          },
        ],
        audit,
        { keepsConfig: enable !== undefined && enable.config === undefined, seen: seenPack(enable ?? disable) },
      );
    }),

  removeGroup: organizationMutation('manage', 'policy-group.remove')
    .input(input(Type.Object(group)))
    .mutation(async ({ ctx: { audit, caller, services }, input: { group: name, organization } }) => {
      await services.policyGroups.delete({ organization, name }, caller, audit);
    }),
});

function seenPack(change: { readonly pack: string; readonly seen?: string | null } | undefined): SeenPack | undefined {
  return change?.seen === undefined ? undefined : { pack: change.pack, tag: change.seen };
}
