import type { FastifyInstance, FastifyRequest } from 'fastify';
import { roleIncludes } from '../../shared/identity/roles.ts';
import { ForbiddenError, NotFoundError, UnauthenticatedError } from '../../shared/platform/errors/errors.ts';
import type { ApiServices } from '../api-services.ts';
import type { Access, Caller, Lease } from '../request.ts';
import { credential } from './credential.ts';

/**
 * Checks each request against the access that its route declares (`config.access`), before any byte of its body is read. The app
 * does not start with a route that declares none.
 */
export function registerAccess(app: FastifyInstance, services: ApiServices): void {
  app.decorateRequest('caller', null as unknown as Caller);
  app.decorateRequest('lease', null as unknown as Lease);
  app.addHook('onRoute', (route) => {
    if (!route.config?.access)
      throw new Error(`Route ${String(route.method)} ${route.url} does not declare who may call it`);
  });
  const { leases } = services;
  app.addHook('onRoute', (route) => leases.guard(route));
  app.addHook('onRequest', async (request) => {
    const access: Access | undefined = request.routeOptions.config.access;
    if (!access || access.kind === 'public') return;
    if (access.kind === 'lease') request.lease = await leases.admit(request, access);
    else request.caller = await admitCaller(services, request, access);
  });
}

async function admitCaller(
  { credentials, users }: ApiServices,
  request: FastifyRequest,
  access: Extract<Access, { kind: 'user' | 'organization' }>,
): Promise<Caller> {
  const token = credential(request, ['token', 'bearer']);
  if (token === null) throw new UnauthenticatedError('This call needs an API token: Authorization: token <token>');
  const organization = (request.params as { organization?: string }).organization ?? null;
  const caller = await credentials.findCaller(request.raw, token, organization);
  if (!caller) throw new UnauthenticatedError('The API token is not valid: unknown, revoked or expired');
  // Set here, because a refusal is recorded with the caller's name.
  request.caller = caller;
  if (caller.tokenStale) await users.touchToken(caller.tokenId);
  if (access.kind === 'organization') {
    // Non-members must not learn what exists in the organization.
    if (caller.role === null) throw new NotFoundError('Not found, or you are not a member of the organization');
    if (!roleIncludes(caller.role, access.role)) {
      throw new ForbiddenError(
        `This needs the role ${access.role} in organization ${organization}; you are ${caller.role}`,
      );
    }
  }
  return caller;
}
