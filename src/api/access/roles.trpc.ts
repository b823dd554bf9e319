import { Type } from 'typebox';
import { seenByField } from '../platform/edits/revisions.ts';
import { input, Name, Revision, text } from './procedures/inputs.ts';
import { organizationMutation, organizationProcedure, router } from './procedures/trpc.ts';
import { type RoleService, revisionOfRole } from './role-service.ts';
import type { RoleView } from './role-view.ts';

declare module './procedures/context.ts' {
  interface ProcedureServices {
    readonly roles: RoleService;
  }
}

const maxDescription = 5_000;
const maxPermissions = 20;
const Permissions = Type.Array(text(40), { minItems: 1, maxItems: maxPermissions });
const chosen = { id: text(40) };

export const rolesRouter = router({
  /** Built-in roles come first. An organization has few enough roles for one page. */
  list: organizationProcedure('read').query(async ({ ctx: { services }, input: { organization } }) => ({
    items: (await services.roles.list(organization)).map(toRole),
    next: null,
  })),

  /** The grants are removed with the role. */
  countGrants: organizationProcedure('manage')
    .input(input(Type.Object(chosen)))
    .query(async ({ ctx: { services }, input: { id, organization } }) => ({
      grants: await services.roles.countGrants(organization, id),
    })),

  create: organizationMutation('manage', 'role.create')
    .input(input(Type.Object({ name: Name, description: text(maxDescription), permissions: Permissions })))
    .mutation(async ({ ctx: { audit, caller, services }, input: { organization, permissions, ...role } }) => {
      const request = { ...role, details: detailsOf(permissions) };
      return toRole(await services.roles.create(caller, organization, request, audit));
    }),

  edit: organizationMutation('manage', 'role.change')
    .input(
      input(
        Type.Object({
          ...chosen,
          revision: Revision,
          name: Name,
          description: text(maxDescription),
          permissions: Permissions,
        }),
      ),
    )
    .mutation(
      async ({ ctx: { audit, caller, services }, input: { id, organization, permissions, revision, ...role } }) => {
        const request = { ...role, details: detailsOf(permissions) };
        return toRole(await services.roles.update(caller, organization, { id, request }, audit, seenByField(revision)));
      },
    ),

  /** With `force`, also removes the grants that give it. */
  delete: organizationMutation('manage', 'role.remove')
    .input(input(Type.Object({ ...chosen, revision: Revision, force: Type.Boolean() })))
    .mutation(async ({ ctx: { audit, caller, services }, input: { force, id, organization, revision } }) => {
      await services.roles.remove(caller, organization, { id, force }, audit, seenByField(revision));
    }),
});

const prefix = 'stack:';

function detailsOf(permissions: readonly string[]) {
  return { __type: 'PermissionDescriptorAllow', permissions: permissions.map((name) => prefix + name) };
}

function toRole(view: RoleView) {
  const { builtIn, changedAt, description, details, id, name } = view;
  return {
    revision: revisionOfRole(view),
    id,
    name,
    description,
    isBuiltIn: builtIn !== null,
    permissions: details.permissions.map((permission) => permission.slice(prefix.length)),
    changedAt: changedAt.toISOString(),
  };
}
