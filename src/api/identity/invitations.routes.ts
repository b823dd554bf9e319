import { Type } from 'typebox';
import { apiToken } from '../platform/http/paths.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { OrganizationParams } from '../platform/protocol/core.ts';
import type { InvitationRow, InvitationService } from './invitation-service.ts';
import { InvitationsResponse, InviteRequest, OwnInvitationsResponse } from './invitations.schemas.ts';
import type { MemberService } from './member-service.ts';
import { MemberParams } from './members.schemas.ts';
import { personOf } from './person.ts';

export interface Services {
  readonly invitations: InvitationService;
  readonly members: MemberService;
}

const tags = ['members'];
const path = '/api/orgs/:organization/invitations';
const ownPath = '/api/user/invitations';
const manage = { access: { kind: 'organization', permission: 'manage' }, rate: 'held' } as const;
const own = { access: { kind: 'user' }, rate: 'held' } as const;
const nothing = { 204: Type.Null() };

export function registerInvitationRoutes(app: RouteScope, services: Services): void {
  registerOfOrganization(app, services);
  registerOfPerson(app, services);
}

function registerOfOrganization(app: RouteScope, { invitations }: Services): void {
  app.get(
    path,
    {
      config: manage,
      schema: {
        tags,
        summary: 'List the open invitations of an organization',
        security: apiToken,
        params: OrganizationParams,
        response: { 200: InvitationsResponse },
      },
    },
    async ({ params }) => ({
      invitations: (await invitations.list(params.organization)).map((row) => ({ login: row.login, ...termsOf(row) })),
    }),
  );
  app.post(
    path,
    {
      config: { ...manage, audit: 'member.invite', described: { errorStatuses: [409] } },
      schema: {
        tags,
        summary: 'Invite a user by login; the response does not reveal whether the login exists',
        security: apiToken,
        params: OrganizationParams,
        body: InviteRequest,
        response: nothing,
      },
    },
    async ({ audit, body, caller, params }, reply) => {
      await invitations.invite(caller, params.organization, body, audit);
      return reply.code(204).send(null);
    },
  );
  app.delete(
    `${path}/:login`,
    {
      config: { ...manage, audit: 'member.withdraw' },
      schema: { tags, summary: 'Withdraw an invitation', security: apiToken, params: MemberParams, response: nothing },
    },
    async ({ audit, caller, params }, reply) => {
      await invitations.withdraw(caller, params.organization, params.login, audit);
      return reply.code(204).send(null);
    },
  );
}

function registerOfPerson(app: RouteScope, { invitations, members }: Services): void {
  const described = { errorStatuses: [403, 404] };
  app.get(
    ownPath,
    {
      config: { ...own, described: { errorStatuses: [403] } },
      schema: {
        tags,
        summary: 'List the caller’s invitations',
        security: apiToken,
        response: { 200: OwnInvitationsResponse },
      },
    },
    async ({ caller }) => ({
      invitations: (await invitations.listOf(personOf(caller))).map((row) => ({
        organization: row.organization,
        ...termsOf(row),
      })),
    }),
  );
  app.post(
    `${ownPath}/:organization/accept`,
    {
      config: { ...own, audit: 'member.accept', described },
      schema: {
        tags,
        summary: 'Accept an invitation',
        security: apiToken,
        params: OrganizationParams,
        response: nothing,
      },
    },
    async ({ audit, caller, params }, reply) => {
      await invitations.accept(personOf(caller), params.organization, audit);
      return reply.code(204).send(null);
    },
  );
  app.delete(
    `${ownPath}/:organization`,
    {
      config: { ...own, audit: 'member.decline', described },
      schema: {
        tags,
        summary: 'Decline an invitation',
        security: apiToken,
        params: OrganizationParams,
        response: nothing,
      },
    },
    async ({ audit, caller, params }, reply) => {
      await invitations.decline(personOf(caller), params.organization, audit);
      return reply.code(204).send(null);
    },
  );
  app.delete(
    '/api/user/organizations/:organization',
    {
      config: { ...own, audit: 'member.leave', described: { errorStatuses: [403, 404, 409] } },
      schema: {
        tags,
        summary: 'Leave an organization',
        security: apiToken,
        params: OrganizationParams,
        response: nothing,
      },
    },
    async ({ audit, caller, params }, reply) => {
      await members.leave(personOf(caller), params.organization, audit);
      return reply.code(204).send(null);
    },
  );
}

function termsOf({ createdAt, expiresAt, invitedBy, role }: InvitationRow) {
  return { role, invitedBy, created: seconds(createdAt), expires: seconds(expiresAt) };
}

function seconds(time: Date): number {
  return Math.floor(time.getTime() / 1000);
}
