import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify';
import { UnauthenticatedError } from '../../../shared/platform/errors/errors.ts';
import type { StackRef } from '../../../shared/stacks/names.ts';
import { assertAuthorized, type CallerAccess } from '../../access/authorize-call.ts';
import { actionOf } from '../../platform/audit-trail/declared-action.ts';
import type { Access, Caller, Lease } from '../../platform/http/request.ts';
import type { Authenticator } from '../credentials/authenticator.ts';
import type { LeaseAccess } from '../credentials/lease-access.ts';
import type { UserService } from '../user-service.ts';
import { credential } from './credential.ts';

export interface Services {
  readonly credentials: Authenticator;
  readonly leases: LeaseAccess;
  readonly users: UserService;
}

/**
 * Checks each request before any byte of its body is read. The app does not start if a route declares no access (`config.access`), or one
 * that its path does not support.
 */
export function registerAccess(app: FastifyInstance, services: Services): void {
  app.decorateRequest('caller', null as unknown as Caller);
  app.decorateRequest('lease', null as unknown as Lease);
  app.addHook('onRoute', assertAccess);
  const { leases } = services;
  app.addHook('onRoute', (route) => leases.explainLosses(route));
  app.addHook('onRequest', async (request) => {
    const access: Access | undefined = request.routeOptions.config.access;
    if (!access || access.kind === 'public') return;
    if (access.kind === 'session' || access.kind === 'procedures')
      throw new UnauthenticatedError('This call needs a signed-in user');
    if (access.kind === 'lease') request.lease = await leases.admit(request, access);
    else request.caller = await admitCaller(services, request, access);
  });
}

function assertAccess({ config, method, url }: RouteOptions): void {
  const access = config?.access;
  if (!access) throw new Error(`Route ${String(method)} ${url} does not declare who may call it`);
  const needed = { organization: '/:organization', stack: '/:organization/:project/:stack' };
  if ((access.kind === 'organization' || access.kind === 'stack') && !`${url}/`.includes(`${needed[access.kind]}/`)) {
    throw new Error(`Route ${String(method)} ${url} requires a permission on a target that its path does not name`);
  }
}

async function admitCaller(
  { credentials, users }: Services,
  request: FastifyRequest,
  access: CallerAccess,
): Promise<Caller> {
  const token = credential(request, ['token', 'bearer']);
  if (token === null) throw new UnauthenticatedError('This call needs an API token: Authorization: token <token>');
  const ref = request.params as Partial<StackRef>;
  const target = { organization: ref.organization ?? null, project: ref.project ?? null, stack: ref.stack ?? null };
  const caller = await credentials.findCaller(request.raw, token, target);
  if (!caller) throw new UnauthenticatedError('The API token is not valid: unknown, revoked or expired');
  // Set before the check, because a refusal is recorded with the caller's name.
  request.caller = caller;
  if (caller.tokenStale) await users.touchToken(caller.tokenId);
  assertAuthorized(caller, access, target, actionOf(request));
  return caller;
}
