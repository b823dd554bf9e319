import { Type } from 'typebox';
import { apiToken } from '../platform/http/paths.ts';
import { isPulumiProvider } from '../platform/http/pulumi-provider.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { OrganizationParams } from '../platform/protocol/core.ts';
import { type MemberService, memberRole, type OrganizationMemberRow } from './member-service.ts';
import {
  AddMemberRequest,
  ChangeMemberRequest,
  DescribedMember,
  DescribedMemberChange,
  MemberParams,
  MemberResponse,
  MembersQuery,
  MembersResponse,
} from './members.schemas.ts';

export interface Services {
  readonly members: MemberService;
}

const tags = ['members'];
const path = '/api/orgs/:organization/members';
const manage = { kind: 'organization', permission: 'manage' } as const;

/** `pulumi org member` and the pulumiservice provider use these routes. */
export function registerMemberRoutes(app: RouteScope, services: Services): void {
  listMembers(app, services);
  addMember(app, services);
  changeMember(app, services);
  removeMember(app, services);
}

function listMembers(app: RouteScope, { members }: Services): void {
  app.get(
    path,
    {
      config: { access: { kind: 'organization', permission: 'read' }, rate: 'repeated' },
      schema: {
        tags,
        summary: 'List the members of an organization',
        security: apiToken,
        params: OrganizationParams,
        querystring: MembersQuery,
        response: { 200: MembersResponse },
      },
    },
    async (request) => {
      const { organization } = request.params;
      const page = await members.list(request.caller, organization, request.query.continuationToken || null);
      const { continuationToken } = page;
      const named = isPulumiProvider(request)
        ? page.members.map((row) => namedByLogin(row, organization))
        : page.members;
      return { members: named.map(toResponse), ...(continuationToken === null ? {} : { continuationToken }) };
    },
  );
}

function addMember(app: RouteScope, { members }: Services): void {
  app.post(
    `${path}/:login`,
    {
      config: {
        access: manage,
        rate: 'held',
        audit: 'member.add',
        described: { body: DescribedMember, errorStatuses: [409] },
      },
      schema: {
        tags,
        summary: 'Make an existing user a member at once; with several organizations, for site admins',
        description: 'A deactivated user is refused with 400, a user who is already a member with 409.',
        security: apiToken,
        params: MemberParams,
        body: AddMemberRequest,
        response: { 200: MemberResponse },
      },
    },
    async ({ caller, params, body, audit }) => {
      const { login, organization } = params;
      return toResponse(
        await members.add(caller, organization, { login, role: memberRole(body.role), isNew: true }, audit),
      );
    },
  );
}

function changeMember(app: RouteScope, { members }: Services): void {
  app.patch(
    `${path}/:login`,
    {
      config: {
        access: manage,
        rate: 'held',
        audit: 'member.role',
        described: { body: DescribedMemberChange, errorStatuses: [409] },
      },
      schema: {
        tags,
        summary: 'Change the role of a member',
        security: apiToken,
        params: MemberParams,
        body: ChangeMemberRequest,
        response: { 204: Type.Null() },
      },
    },
    async ({ caller, params, body, audit }, reply) => {
      const { login, organization } = params;
      await members.setRole(caller, organization, { login, change: body }, audit);
      return reply.code(204).send(null);
    },
  );
}

function removeMember(app: RouteScope, { members }: Services): void {
  app.delete(
    `${path}/:login`,
    {
      config: { access: manage, rate: 'held', audit: 'member.remove', described: { errorStatuses: [409] } },
      schema: {
        tags,
        summary: 'Remove a member',
        security: apiToken,
        params: MemberParams,
        response: { 204: Type.Null() },
      },
    },
    async ({ caller, params, audit }, reply) => {
      await members.remove(caller, params.organization, params.login, audit);
      return reply.code(204).send(null);
    },
  );
}

/** Among equal names, the provider keeps only the first member, and it drops members who are named like the organization. */
function namedByLogin(member: OrganizationMemberRow, organization: string): OrganizationMemberRow {
  return { ...member, displayName: member.login === organization ? `@${member.login}` : member.login };
}

function toResponse({ createdAt, displayName, email, login, role }: OrganizationMemberRow) {
  return {
    role,
    user: { name: displayName || login, githubLogin: login, avatarUrl: '', email },
    created: createdAt.toISOString(),
    knownToPulumi: true,
    virtualAdmin: false,
    fgaRole: { id: role, name: role },
  };
}
