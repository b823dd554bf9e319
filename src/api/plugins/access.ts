import type { FastifyInstance, FastifyRequest } from 'fastify';
import { roleIncludes } from '../../shared/identity/roles.ts';
import { hashToken, sameHash } from '../../shared/platform/crypto/secret-token.ts';
import { ForbiddenError, NotFoundError, UnauthenticatedError } from '../../shared/platform/errors/errors.ts';
import type { UpdateParams } from '../../shared/protocol/core.ts';
import { LeaseLostError } from '../../shared/updates/lease.ts';
import { isActive } from '../../shared/updates/update-state.ts';
import type { ApiContext } from '../api-context.ts';
import type { Access, Caller, Lease } from '../request.ts';

const updateIdPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Whether the text can be the id of an update. */
export function isUpdateId(text: string): boolean {
  return updateIdPattern.test(text);
}

/**
 * Lets a request in by what its route asks for (`config.access`), before any byte of its body is read.
 * A route without that option does not start.
 */
export function registerAccess(app: FastifyInstance, context: ApiContext): void {
  app.decorateRequest('caller', null as unknown as Caller);
  app.decorateRequest('lease', null as unknown as Lease);
  app.addHook('onRoute', (route) => {
    if (!route.config?.access)
      throw new Error(`Route ${String(route.method)} ${route.url} does not say who may call it`);
  });
  app.addHook('onRequest', async (request) => {
    const access: Access | undefined = request.routeOptions.config.access;
    if (!access || access.kind === 'public') return;
    if (access.kind === 'lease') request.lease = await admitLease(context, request, access.ended === true);
    else request.caller = await admitCaller(context, request, access);
  });
}

async function admitCaller(
  context: ApiContext,
  request: FastifyRequest,
  access: Extract<Access, { kind: 'user' | 'organization' }>,
): Promise<Caller> {
  const token = credential(request, ['token', 'bearer']);
  if (token === null) throw new UnauthenticatedError('This call needs an API token: Authorization: token <token>');
  const organization = (request.params as { organization?: string }).organization ?? null;
  const caller = await context.identity.findCaller(hashToken(token), organization);
  if (!caller) throw new UnauthenticatedError('The API token is not valid: unknown, revoked or expired');
  if (caller.tokenStale) await context.identity.touchToken(caller.tokenId);
  if (access.kind === 'organization') {
    // Whoever is no member must not learn what exists in the organization.
    if (caller.role === null) throw new NotFoundError('Not found, or you are not a member of the organization');
    if (!roleIncludes(caller.role, access.role)) {
      throw new ForbiddenError(
        `This needs the role ${access.role} in organization ${organization}; you are ${caller.role}`,
      );
    }
  }
  return caller;
}

/** 403 for every lease that is dead, foreign or unknown: the CLI takes only that as final (httpstate/state.go). */
async function admitLease(context: ApiContext, request: FastifyRequest, mayHaveEnded: boolean): Promise<Lease> {
  const token = credential(request, ['update-token']);
  if (token === null) throw new UnauthenticatedError('This call needs a lease: Authorization: update-token <lease>');
  const { updateId, ...ref } = request.params as UpdateParams;
  if (!isUpdateId(updateId)) throw new LeaseLostError();
  const update = await context.updates.findInStack(updateId, ref);
  if (!update?.leaseHash || !sameHash(update.leaseHash, hashToken(token))) throw new LeaseLostError();
  const alive = update.status === 'running' && !update.expired;
  if (!alive && !(mayHaveEnded && !isActive(update.status))) throw new LeaseLostError();
  return {
    updateId: update.id,
    stackId: update.stackId,
    epoch: update.epoch,
    status: update.status,
    journalVersion: update.journalVersion,
    exclusive: update.exclusive,
  };
}

function credential(request: FastifyRequest, schemes: readonly string[]): string | null {
  const header = request.headers.authorization ?? '';
  const space = header.indexOf(' ');
  if (space < 1 || !schemes.includes(header.slice(0, space).toLowerCase())) return null;
  const token = header.slice(space + 1).trim();
  return token === '' ? null : token;
}
