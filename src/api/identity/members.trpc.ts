import { Type } from 'typebox';
import { Role } from '../../shared/access/roles.ts';
import { decodeCursor, defaultPage, encodeCursor, input, Name, page, text } from '../access/procedures/inputs.ts';
import { organizationMutation, organizationProcedure, router } from '../access/procedures/trpc.ts';
import { seenByField } from '../platform/edits/revisions.ts';
import type { MemberService } from './member-service.ts';
import type { PeopleQueries } from './people-queries.ts';

declare module '../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly members: MemberService;
    readonly peopleQueries: PeopleQueries;
  }
}

const LastName = Type.Tuple([Name]);
const chosen = { login: Name };

export const membersRouter = router({
  /** In the order of their logins. */
  list: organizationProcedure('read')
    .input(input(Type.Object({ text: Type.Optional(text(200)), role: Type.Optional(Role), ...page })))
    .query(async ({ ctx: { caller, services }, input: query }) => {
      const { cursor, limit = defaultPage, organization, role = null } = query;
      const [after] = decodeCursor(cursor, LastName) ?? [null];
      const selection = { text: query.text?.trim() || null, role, after, limit };
      const { items, next } = await services.peopleQueries.listMembers(caller, organization, selection);
      return { items, next: next === null ? null : encodeCursor([next]) };
    }),

  /** Adds an existing user at once, without an invitation. */
  add: organizationMutation('manage', 'member.add')
    .input(input(Type.Object({ ...chosen, role: Role })))
    .mutation(async ({ ctx: { audit, caller, services }, input: { login, organization, role } }) => {
      await services.members.add(caller, organization, { login, role }, audit);
    }),

  /** In the order of logins. */
  invitations: organizationProcedure('manage').query(async ({ ctx: { services }, input: { organization } }) => ({
    items: (await services.invitations.list(organization)).map(({ createdAt, expiresAt, invitedBy, login, role }) => ({
      ...{ login, role, invitedBy },
      at: createdAt.toISOString(),
      until: expiresAt.toISOString(),
    })),
    next: null,
  })),

  /** The response does not reveal whether the login exists. */
  invite: organizationMutation('manage', 'member.invite')
    .input(input(Type.Object({ ...chosen, role: Role })))
    .mutation(async ({ ctx: { audit, caller, services }, input: { login, organization, role } }) => {
      await services.invitations.invite(caller, organization, { login, role }, audit);
    }),

  withdraw: organizationMutation('manage', 'member.withdraw')
    .input(input(Type.Object(chosen)))
    .mutation(async ({ ctx: { audit, caller, services }, input: { login, organization } }) => {
      await services.invitations.withdraw(caller, organization, login, audit);
    }),

  /** `seen`: the role that the caller has read. */
  setRole: organizationMutation('manage', 'member.role')
    .input(input(Type.Object({ ...chosen, role: Role, seen: Type.Optional(Role) })))
    .mutation(async ({ ctx: { audit, caller, services }, input: { login, organization, role, seen } }) => {
      await services.members.setRole(caller, organization, { login, change: { role } }, audit, seenByField(seen));
    }),

  remove: organizationMutation('manage', 'member.remove')
    .input(input(Type.Object(chosen)))
    .mutation(async ({ ctx: { audit, caller, services }, input: { login, organization } }) => {
      await services.members.remove(caller, organization, login, audit);
    }),
});
