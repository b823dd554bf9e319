import { Type } from 'typebox';
import { apiToken } from '../platform/http/paths.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import {
  ChangeUserRequest,
  CreateUserRequest,
  ListUsersResponse,
  PageQuery,
  UserParams,
  UserResponse,
} from './operator.schemas.ts';
import type { ListedPersonRow, UserDirectory } from './user-directory.ts';

export interface Services {
  readonly userDirectory: UserDirectory;
}

const tags = ['operator'];
const path = '/api/operator/users';
const operate = { access: { kind: 'operator' }, rate: 'held' } as const;

export function registerUserDirectoryRoutes(app: RouteScope, { userDirectory: users }: Services): void {
  app.get(
    path,
    {
      config: operate,
      schema: {
        tags,
        summary: 'List all users with their organizations',
        security: apiToken,
        querystring: PageQuery,
        response: { 200: ListUsersResponse },
      },
    },
    async ({ query }) => {
      const { rows, ...page } = await users.list(query.continuationToken);
      return { users: rows.map(toResponse), ...page };
    },
  );
  app.post(
    path,
    {
      config: { ...operate, audit: 'user.create', described: { errorStatuses: [409] } },
      schema: {
        tags,
        summary: 'Create a user without a password',
        security: apiToken,
        body: CreateUserRequest,
        response: { 200: UserResponse },
      },
    },
    async ({ audit, body, caller }) => {
      await users.create(caller, body, audit);
      return toResponse(await users.get(body.login));
    },
  );
  app.get(
    `${path}/:login`,
    {
      config: operate,
      schema: {
        tags,
        summary: 'Get a user with their organizations',
        security: apiToken,
        params: UserParams,
        response: { 200: UserResponse },
      },
    },
    async ({ params }) => toResponse(await users.get(params.login)),
  );
  app.patch(
    `${path}/:login`,
    {
      config: { ...operate, audit: 'user.site-admin', described: { errorStatuses: [409] } },
      schema: {
        tags,
        summary: 'Deactivate or reactivate a user, or change whether they are a site admin',
        security: apiToken,
        params: UserParams,
        body: ChangeUserRequest,
        response: { 204: Type.Null() },
      },
    },
    async ({ audit, body, caller, params }, reply) => {
      await users.change(caller, params.login, body, audit);
      return reply.code(204).send(null);
    },
  );
}

function toResponse({ displayName, email, isActive, login, organizations, siteAdmin }: ListedPersonRow) {
  return { login, displayName, email, siteAdmin, active: isActive, organizations };
}
