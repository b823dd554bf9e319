import { Type } from 'typebox';
import {
  decodeCursor,
  defaultPage,
  encodeCursor,
  input,
  Name,
  page,
  Revision,
  text,
} from '../access/procedures/inputs.ts';
import { organizationMutation, organizationProcedure, router } from '../access/procedures/trpc.ts';
import { seenByField } from '../platform/edits/revisions.ts';
import type { PeopleQueries } from './people-queries.ts';
import { revisionOfTeam, type TeamService } from './team-service.ts';

declare module '../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly peopleQueries: PeopleQueries;
    readonly teams: TeamService;
  }
}

const LastName = Type.Tuple([Name]);
const maxText = 5_000;
const filter = { text: Type.Optional(text(200)), ...page };
const member = { team: Name, login: Name };

/** The service decides which changes an admin of the team may make. */
export const teamsRouter = router({
  /** In the order of their names. */
  list: organizationProcedure('read')
    .input(input(Type.Object(filter)))
    .query(async ({ ctx: { caller, services }, input: { cursor, limit = defaultPage, organization, text: part } }) => {
      const [after] = decodeCursor(cursor, LastName) ?? [null];
      const query = { text: part?.trim() || null, after, limit };
      const { items, next } = await services.peopleQueries.listTeams(caller, organization, query);
      return { items, next: next === null ? null : encodeCursor([next]) };
    }),

  get: organizationProcedure('read')
    .input(input(Type.Object({ team: Name })))
    .query(async ({ ctx: { caller, services }, input: { organization, team } }) => {
      const found = await services.peopleQueries.getTeam(caller, organization, team);
      return { ...found, revision: revisionOfTeam(found) };
    }),

  /** In the order of their logins. */
  members: organizationProcedure('read')
    .input(input(Type.Object({ team: Name, ...filter })))
    .query(async ({ ctx: { caller, services }, input: query }) => {
      const { cursor, limit = defaultPage, organization, team } = query;
      const [after] = decodeCursor(cursor, LastName) ?? [null];
      const selection = { text: query.text?.trim() || null, after, limit };
      const { items, next } = await services.peopleQueries.listTeamMembers(caller, organization, team, selection);
      return { items, next: next === null ? null : encodeCursor([next]) };
    }),

  create: organizationMutation('manage', 'team.create')
    .input(
      input(
        Type.Object({
          name: Name,
          displayName: Type.Optional(text(maxText)),
          description: Type.Optional(text(maxText)),
        }),
      ),
    )
    .mutation(async ({ ctx: { audit, caller, services }, input: { organization, ...team } }) => {
      await services.teams.create(caller, organization, team, audit);
    }),

  /** Admins of the team may call it, too. */
  edit: organizationMutation('read', 'team.change')
    .input(
      input(Type.Object({ team: Name, revision: Revision, displayName: text(maxText), description: text(maxText) })),
    )
    .mutation(async ({ ctx: { audit, caller, services }, input: { organization, revision, team, ...shown } }) => {
      const change = { newDisplayName: shown.displayName, newDescription: shown.description };
      await services.teams.update(caller, { organization, name: team }, change, audit, seenByField(revision));
    }),

  delete: organizationMutation('manage', 'team.delete')
    .input(input(Type.Object({ team: Name, revision: Revision })))
    .mutation(async ({ ctx: { audit, caller, services }, input: { organization, revision, team } }) => {
      await services.teams.delete(caller, { organization, name: team }, audit, seenByField(revision));
    }),

  /** Admins of the team may call it, too. `isAdmin` promotes or demotes the member. */
  setMember: organizationMutation('read', 'team.add')
    .input(input(Type.Object({ ...member, isAdmin: Type.Optional(Type.Boolean()) })))
    .mutation(async ({ ctx: { audit, caller, services }, input: { isAdmin, login, organization, team } }) => {
      const memberAction =
        isAdmin === undefined ? ('add' as const) : isAdmin ? ('promote' as const) : ('demote' as const);
      await services.teams.update(caller, { organization, name: team }, { member: login, memberAction }, audit);
    }),

  /** Admins of the team may call it, too. */
  removeMember: organizationMutation('read', 'team.remove')
    .input(input(Type.Object(member)))
    .mutation(async ({ ctx: { audit, caller, services }, input: { login, organization, team } }) => {
      const change = { member: login, memberAction: 'remove' as const };
      await services.teams.update(caller, { organization, name: team }, change, audit);
    }),
});
