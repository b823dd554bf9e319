import { Type } from 'typebox';
import { apiToken } from '../platform/http/paths.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { OrganizationParams } from '../platform/protocol/core.ts';
import {
  DeletedStackParams,
  ListDeletedStacksQuery,
  ListDeletedStacksResponse,
  RestoreStackRequest,
  RestoreStackResponse,
} from './deleted-stacks.schemas.ts';
import type { DeletedStacks } from './deleted-stacks.ts';

export interface Services {
  readonly deletedStacks: DeletedStacks;
}

const tags = ['deleted-stacks'];
const path = '/api/orgs/:organization/deleted-stacks';
const access = { kind: 'organization', permission: 'manage' } as const;
const pageSize = 100;

export function registerDeletedStackRoutes(app: RouteScope, services: Services): void {
  listDeletedStacks(app, services);
  restoreStack(app, services);
  purgeStack(app, services);
}

function listDeletedStacks(app: RouteScope, { deletedStacks }: Services): void {
  app.get(
    path,
    {
      config: { access, rate: 'held' },
      schema: {
        tags,
        summary: 'List the deleted stacks of an organization that can be restored',
        security: apiToken,
        params: OrganizationParams,
        querystring: ListDeletedStacksQuery,
        response: { 200: ListDeletedStacksResponse },
      },
    },
    async ({ params, query }) => {
      const { items, next } = await deletedStacks.list(params.organization, query.continuationToken || null, pageSize);
      return {
        deletedStacks: items.map(({ isNameTaken, project, stack, ...item }) => ({
          ...item,
          projectName: project,
          stackName: stack,
          nameTaken: isNameTaken,
        })),
        continuationToken: next,
      };
    },
  );
}

function restoreStack(app: RouteScope, { deletedStacks }: Services): void {
  app.post(
    `${path}/:deletedStackId/restore`,
    {
      config: { access, rate: 'held', audit: 'stack.undelete', described: { errorStatuses: [409] } },
      schema: {
        tags,
        summary: 'Restore a deleted stack',
        description: 'Under its own name, or under another name if it is taken (409).',
        security: apiToken,
        params: DeletedStackParams,
        body: RestoreStackRequest,
        response: { 200: RestoreStackResponse },
      },
    },
    async ({ audit, body, caller, params: { organization, deletedStackId } }) => {
      const name = { project: body?.projectName ?? null, stack: body?.stackName ?? null };
      const restored = await deletedStacks.restore(caller, { organization, id: deletedStackId }, name, audit);
      return { orgName: restored.organization, projectName: restored.project, stackName: restored.stack };
    },
  );
}

function purgeStack(app: RouteScope, { deletedStacks }: Services): void {
  app.delete(
    `${path}/:deletedStackId`,
    {
      config: { access, rate: 'held', audit: 'stack.purge', described: { errorStatuses: [409] } },
      schema: {
        tags,
        summary: 'Delete the data of a deleted stack at once',
        security: apiToken,
        params: DeletedStackParams,
        response: { 204: Type.Null() },
      },
    },
    async ({ audit, caller, params: { organization, deletedStackId } }, reply) => {
      await deletedStacks.purge(caller, { organization, id: deletedStackId }, audit);
      return reply.code(204).send(null);
    },
  );
}
