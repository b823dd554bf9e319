import { type TSchema, Type } from 'typebox';
import { writeScope } from '../../shared/identity/token-scopes.ts';
import { InvalidRequestError } from '../../shared/platform/errors/errors.ts';
import { apiToken } from '../platform/http/paths.ts';
import type { Access } from '../platform/http/request.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { OrganizationParams, TeamParams } from '../platform/protocol/core.ts';
import type { CreatedToken, TokenOwnerRef, TokenRequest, TokenRow, TokenService } from './token-service.ts';
import {
  CreateTokenRequest,
  CreateTokenResponse,
  ListTokensResponse,
  RotateTokenRequest,
  RotateTokenResponse,
} from './tokens.schemas.ts';

export interface Services {
  readonly tokens: TokenService;
}

const tags = ['tokens'];
/** The default time for which the previous secret stays valid after a rotation. */
const defaultOverlapSeconds = 86_400;

interface TokenRoutes {
  readonly path: string;
  readonly of: string;
  readonly access: Access;
  readonly params: TSchema;
  readonly ownerOf: (params: unknown) => TokenOwnerRef;
}

const tokenRoutes: readonly TokenRoutes[] = [
  {
    path: '/api/user/tokens',
    of: 'the caller',
    access: { kind: 'user' },
    params: Type.Object({}),
    ownerOf: () => ({ of: 'caller' }),
  },
  {
    path: '/api/orgs/:organization/tokens',
    of: 'an organization',
    access: { kind: 'organization', permission: 'manage' },
    params: OrganizationParams,
    ownerOf: (params) => ({ of: 'organization', ...(params as { organization: string }) }),
  },
  {
    path: '/api/orgs/:organization/teams/:team/tokens',
    of: 'a team',
    // Admins of the team may call it, too: the service checks.
    access: { kind: 'organization', permission: 'read' },
    params: TeamParams,
    ownerOf: (params) => ({ of: 'team', ...(params as { organization: string; team: string }) }),
  },
];

/** Only the response that creates a secret contains it. */
export function registerTokenRoutes(app: RouteScope, services: Services): void {
  for (const routes of tokenRoutes) {
    listTokens(app, services, routes);
    createToken(app, services, routes);
    revokeToken(app, services, routes);
    rotateToken(app, services, routes);
  }
}

function listTokens(app: RouteScope, { tokens }: Services, { access, of, params, path, ownerOf }: TokenRoutes): void {
  app.get(
    path,
    {
      config: { access, rate: 'repeated', described: { errorStatuses: [403] } },
      schema: {
        tags,
        summary: `List the tokens of ${of}`,
        security: apiToken,
        params,
        response: { 200: ListTokensResponse },
      },
    },
    async (request) => {
      const rows = await tokens.list(request.caller, ownerOf(request.params));
      return { tokens: rows.map(toResponse) };
    },
  );
}

function createToken(app: RouteScope, { tokens }: Services, { access, of, params, path, ownerOf }: TokenRoutes): void {
  app.post(
    path,
    {
      config: { access, rate: 'held', audit: 'token.create', described: { errorStatuses: [403, 409] } },
      schema: {
        tags,
        summary: `Create a token of ${of}`,
        security: apiToken,
        params,
        body: CreateTokenRequest,
        response: { 200: CreateTokenResponse },
      },
    },
    async (request) => {
      const owner = ownerOf(request.params);
      return toMade(await tokens.make(request.caller, owner, toRequest(request.body, owner), request.audit));
    },
  );
}

function revokeToken(app: RouteScope, { tokens }: Services, { access, of, params, path, ownerOf }: TokenRoutes): void {
  app.delete(
    `${path}/:tokenId`,
    {
      config: { access, rate: 'held', audit: 'token.revoke', described: { errorStatuses: [403] } },
      schema: {
        tags,
        summary: `Revoke a token of ${of}`,
        security: apiToken,
        params: withTokenId(params),
        response: { 204: Type.Null() },
      },
    },
    async (request, reply) => {
      const { tokenId } = request.params as { tokenId: string };
      await tokens.revoke(request.caller, ownerOf(request.params), tokenId, request.audit);
      return reply.code(204).send(null);
    },
  );
}

function rotateToken(app: RouteScope, { tokens }: Services, { access, of, params, path, ownerOf }: TokenRoutes): void {
  app.post(
    `${path}/:tokenId/rotate`,
    {
      config: { access, rate: 'held', audit: 'token.rotate', described: { errorStatuses: [403] } },
      schema: {
        tags,
        summary: `Replace the secret of a token of ${of}`,
        security: apiToken,
        params: withTokenId(params),
        body: RotateTokenRequest,
        response: { 200: RotateTokenResponse },
      },
    },
    async (request) => {
      const { tokenId } = request.params as { tokenId: string };
      const overlapSeconds = request.body?.overlapSeconds ?? defaultOverlapSeconds;
      const rotated = await tokens.rotate(
        request.caller,
        ownerOf(request.params),
        { id: tokenId, overlapSeconds },
        request.audit,
      );
      return { ...toMade(rotated), previousExpires: seconds(rotated.previousUntil) };
    },
  );
}

function withTokenId(params: TSchema): TSchema {
  const { properties } = params as unknown as { properties: Record<string, TSchema> };
  return Type.Object({ ...properties, tokenId: Type.String() });
}

function toRequest(body: CreateTokenRequest, owner: TokenOwnerRef): TokenRequest {
  return {
    name: body.name || null,
    description: body.description ?? '',
    expires: body.expires ?? null,
    scopes: body.scopes ?? null,
    admin: isAdmin(body, owner),
    service: body.service ?? false,
  };
}

function isAdmin({ admin = false, roleID, service = false }: CreateTokenRequest, { of }: TokenOwnerRef): boolean {
  if (!roleID) return admin;
  const isRole = roleID === 'admin' || (roleID === 'member' && !admin);
  if (of !== 'organization' || service || !isRole)
    throw new InvalidRequestError(
      'roleID is member or admin, and only for tokens of an organization. `scopes` limits a token to permissions and stacks; grants (POST /api/orgs/ORG/grants) give a role to a token with `service: true`',
    );
  return roleID === 'admin';
}

function toMade({ expiresAt, id, token }: CreatedToken) {
  return { id, tokenValue: token, expires: seconds(expiresAt) };
}

function toResponse(row: TokenRow) {
  return {
    id: row.id,
    name: row.name ?? '',
    description: row.description,
    kind: row.kind,
    admin: row.role === 'admin',
    created: row.createdAt.toISOString(),
    createdBy: row.createdBy ?? '',
    expires: seconds(row.expiresAt),
    lastUsed: seconds(row.lastUsedAt),
    previousExpires: seconds(row.previousUntil),
    scopes:
      row.scopes?.map((scope) => ({ ...writeScope(scope), permissions: [...writeScope(scope).permissions] })) ?? null,
  };
}

/** Seconds since 1970; 0 for never. */
function seconds(time: Date | null): number {
  return time === null ? 0 : Math.floor(time.getTime() / 1000);
}
