import { Type } from 'typebox';
import { apiToken, policyGroupsPath } from '../platform/http/paths.ts';
import { isPulumiProvider } from '../platform/http/pulumi-provider.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { policyGroupResponse, policyGroupSummary } from './policies.mappers.ts';
import {
  CreatePolicyGroupRequest,
  ListPolicyGroupsResponse,
  OrganizationParams,
  PolicyGroupParams,
  PolicyGroupResponse,
  UpdatePolicyGroupBatchRequest,
  UpdatePolicyGroupRequest,
} from './policies.schemas.ts';
import type { PolicyGroupService } from './policy-group-service.ts';

export interface Services {
  readonly policyGroups: PolicyGroupService;
}

const tags = ['policies'];
const read = { access: { kind: 'organization', permission: 'read' }, rate: 'repeated' } as const;
const manage = { access: { kind: 'organization', permission: 'manage' }, rate: 'held' } as const;
const groupPath = `${policyGroupsPath}/:group`;

export function registerPolicyGroupRoutes(app: RouteScope, services: Services): void {
  listGroups(app, services);
  createGroup(app, services);
  getGroup(app, services);
  updateGroup(app, services);
  updateGroupInBatch(app, services);
  removeGroup(app, services);
}

function listGroups(app: RouteScope, { policyGroups }: Services): void {
  app.get(
    policyGroupsPath,
    {
      config: read,
      schema: {
        tags,
        summary: 'List policy groups',
        security: apiToken,
        params: OrganizationParams,
        response: { 200: ListPolicyGroupsResponse },
      },
    },
    async ({ caller, params }) => ({
      policyGroups: (await policyGroups.list(caller, params.organization)).map(policyGroupSummary),
    }),
  );
}

function createGroup(app: RouteScope, { policyGroups }: Services): void {
  app.post(
    policyGroupsPath,
    {
      config: { ...manage, audit: 'policy-group.create', described: { errorStatuses: [409] } },
      schema: {
        tags,
        summary: 'Create a policy group',
        security: apiToken,
        params: OrganizationParams,
        body: CreatePolicyGroupRequest,
        response: { 204: Type.Null() },
      },
    },
    async ({ params, caller, body, audit }, reply) => {
      await policyGroups.create(params.organization, caller, body, audit);
      return reply.code(204).send(null);
    },
  );
}

function getGroup(app: RouteScope, { policyGroups }: Services): void {
  app.get(
    groupPath,
    {
      config: read,
      schema: {
        tags,
        summary: 'Get a policy group',
        security: apiToken,
        params: PolicyGroupParams,
        response: { 200: PolicyGroupResponse },
      },
    },
    async (request) => {
      const { params, caller } = request;
      const view = await policyGroups.get(params.organization, caller, params.group);
      return policyGroupResponse(view, { isForProvider: isPulumiProvider(request) });
    },
  );
}

function updateGroup(app: RouteScope, { policyGroups }: Services): void {
  app.patch(
    groupPath,
    {
      config: { ...manage, audit: 'policy-group.change', described: { errorStatuses: [409] } },
      schema: {
        tags,
        summary: 'Change the name, stacks and policy packs of a policy group',
        security: apiToken,
        params: PolicyGroupParams,
        body: UpdatePolicyGroupRequest,
        response: { 204: Type.Null() },
      },
    },
    async ({ params, caller, body, audit }, reply) => {
      const { organization, group } = params;
      await policyGroups.update({ organization, name: group }, caller, [body], audit);
      return reply.code(204).send(null);
    },
  );
}

function updateGroupInBatch(app: RouteScope, { policyGroups }: Services): void {
  app.patch(
    `${groupPath}/batch`,
    {
      config: { ...manage, audit: 'policy-group.change', described: { errorStatuses: [409] } },
      schema: {
        tags,
        summary: 'Make several changes of a policy group in this order: all, or none',
        security: apiToken,
        params: PolicyGroupParams,
        body: UpdatePolicyGroupBatchRequest,
        response: { 204: Type.Null() },
      },
    },
    async ({ params, caller, body, audit }, reply) => {
      const { organization, group } = params;
      await policyGroups.update({ organization, name: group }, caller, body, audit);
      return reply.code(204).send(null);
    },
  );
}

function removeGroup(app: RouteScope, { policyGroups }: Services): void {
  app.delete(
    groupPath,
    {
      config: { ...manage, audit: 'policy-group.remove', described: { errorStatuses: [409] } },
      schema: {
        tags,
        summary: 'Remove a policy group',
        security: apiToken,
        params: PolicyGroupParams,
        response: { 204: Type.Null() },
      },
    },
    async ({ params, caller, audit }, reply) => {
      const { organization, group } = params;
      await policyGroups.delete({ organization, name: group }, caller, audit);
      return reply.code(204).send(null);
    },
  );
}
