import { Type } from 'typebox';
import { assertSeesPeople, seesPeople, withAddresses } from '../access/people-access.ts';
import { seenByHeader, tagOf } from '../platform/edits/revisions.ts';
import { apiToken, stackPath } from '../platform/http/paths.ts';
import type { Caller } from '../platform/http/request.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { OrganizationParams, StackParams, TeamParams } from '../platform/protocol/core.ts';
import { IfMatchHeaders } from '../platform/protocol/edits.ts';
import { toLevel } from './stack-permissions.ts';
import { revisionOfTeam, type TeamService, type TeamView } from './team-service.ts';
import {
  CollaboratorsResponse,
  CreateTeamRequest,
  ListTeamsResponse,
  StackTeamsResponse,
  TeamResponse,
  UpdateTeamRequest,
} from './teams.schemas.ts';

export interface Services {
  readonly teams: TeamService;
}

const tags = ['teams'];
const path = '/api/orgs/:organization/teams';
const read = { access: { kind: 'organization', permission: 'read' }, rate: 'held' } as const;
const manage = { access: { kind: 'organization', permission: 'manage' }, rate: 'held' } as const;
const readStack = { access: { kind: 'stack', permission: 'read' }, rate: 'held' } as const;

/** These routes are as in Pulumi's REST API. */
export function registerTeamRoutes(app: RouteScope, services: Services): void {
  listTeams(app, services);
  createTeam(app, services);
  getTeam(app, services);
  updateTeam(app, services);
  deleteTeam(app, services);
  listStackTeams(app, services);
  listCollaborators(app, services);
}

function listTeams(app: RouteScope, { teams }: Services): void {
  app.get(
    path,
    {
      config: read,
      schema: {
        tags,
        summary: 'List the teams of an organization with their members',
        security: apiToken,
        params: OrganizationParams,
        response: { 200: ListTeamsResponse },
      },
    },
    async ({ caller, params }) => ({
      teams: (await teams.list(params.organization)).map((view) => toResponse(caller, view)),
    }),
  );
}

function createTeam(app: RouteScope, { teams }: Services): void {
  app.post(
    `${path}/pulumi`,
    {
      config: { ...manage, audit: 'team.create', described: { errorStatuses: [409] } },
      schema: {
        tags,
        summary: 'Create a team',
        security: apiToken,
        params: OrganizationParams,
        body: CreateTeamRequest,
        response: { 200: TeamResponse },
      },
    },
    async ({ audit, body, caller, params }) =>
      toResponse(caller, await teams.create(caller, params.organization, body, audit)),
  );
}

function getTeam(app: RouteScope, { teams }: Services): void {
  app.get(
    `${path}/:team`,
    {
      config: read,
      schema: {
        tags,
        summary: 'Get a team with its members and the stacks granted to it by name',
        security: apiToken,
        params: TeamParams,
        response: { 200: TeamResponse },
      },
    },
    async ({ caller, params }, reply) => {
      const { organization, team: name } = params;
      const view = await teams.get(caller, { organization, name });
      void reply.header('etag', tagOf(revisionOfTeam(view.team)));
      return toResponse(caller, view);
    },
  );
}

function updateTeam(app: RouteScope, { teams }: Services): void {
  app.patch(
    `${path}/:team`,
    {
      // Admins of the team may call it, too: the service checks.
      config: { ...read, audit: 'team.change', described: { errorStatuses: [403, 412] } },
      schema: {
        tags,
        headers: IfMatchHeaders,
        summary: 'Change the name, the members or the stacks of a team',
        security: apiToken,
        params: TeamParams,
        body: UpdateTeamRequest,
        response: { 204: Type.Null() },
      },
    },
    async ({ audit, body, caller, headers, params }, reply) => {
      const { organization, team: name } = params;
      await teams.update(caller, { organization, name }, body, audit, seenByHeader(headers['if-match']));
      return reply.code(204).send(null);
    },
  );
}

function deleteTeam(app: RouteScope, { teams }: Services): void {
  app.delete(
    `${path}/:team`,
    {
      config: { ...manage, audit: 'team.delete', described: { errorStatuses: [412] } },
      schema: {
        tags,
        headers: IfMatchHeaders,
        summary: 'Delete a team with its grants and tokens',
        security: apiToken,
        params: TeamParams,
        response: { 204: Type.Null() },
      },
    },
    async ({ audit, caller, headers, params }, reply) => {
      const { organization, team: name } = params;
      await teams.delete(caller, { organization, name }, audit, seenByHeader(headers['if-match']));
      return reply.code(204).send(null);
    },
  );
}

function listStackTeams(app: RouteScope, { teams }: Services): void {
  app.get(
    `${stackPath}/teams`,
    {
      config: readStack,
      schema: {
        tags,
        summary: 'List the teams that may read a stack by grants',
        security: apiToken,
        params: StackParams,
        response: { 200: StackTeamsResponse },
      },
    },
    async ({ caller, params }) => ({
      projectName: params.project,
      teams: (await teams.listOfStack(caller, params)).map(({ isMember, level, of }) => {
        const { description, displayName, name } = of;
        return { name, displayName, description, permission: level, isMember };
      }),
    }),
  );
}

function listCollaborators(app: RouteScope, { teams }: Services): void {
  app.get(
    `${stackPath}/collaborators`,
    {
      config: { access: { kind: 'stack', permission: 'manage' }, rate: 'held' },
      schema: {
        tags,
        summary: 'List the users who may read a stack by grants of their own',
        security: apiToken,
        params: StackParams,
        response: { 200: CollaboratorsResponse },
      },
    },
    async ({ caller, params }) => {
      assertSeesPeople(caller);
      return {
        users: (await teams.listCollaborators(params)).map(({ level, of }) => ({
          user: userInfo(withAddresses(caller, [of])[0] ?? of),
          permission: level,
        })),
      };
    },
  );
}

function userInfo({ displayName, email, login }: { displayName: string; email: string; login: string }) {
  return { name: displayName || login, githubLogin: login, avatarUrl: '', email };
}

function toResponse(caller: Caller, { members, stacks, team }: TeamView) {
  const { description, displayName, name } = team;
  const own = caller.tokenKind === 'personal' ? members.find(({ login }) => login === caller.login) : undefined;
  const shown = seesPeople(caller) ? withAddresses(caller, members) : [];
  const roleOf = ({ isAdmin }: { isAdmin: boolean }) => (isAdmin ? ('admin' as const) : ('member' as const));
  return {
    kind: 'pulumi' as const,
    name,
    displayName,
    description,
    userRole: own ? roleOf(own) : ('none' as const),
    members: shown.map((member) => ({ ...userInfo(member), role: roleOf(member) })),
    ...(stacks
      ? {
          stacks: stacks.map(({ permissions, project, stack }) => ({
            projectName: project,
            stackName: stack,
            permission: toLevel(permissions),
          })),
        }
      : {}),
  };
}
