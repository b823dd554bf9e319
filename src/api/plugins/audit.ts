import type { FastifyInstance, FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import type { AuditAction } from '../../shared/audit/audit-actions.ts';
import { type AuditSource, requestSource } from '../../shared/audit/audit-event.ts';
import { permits } from '../../shared/identity/permissions.ts';
import { ForbiddenError } from '../../shared/platform/errors/errors.ts';
import type { ApiServices } from '../api-services.ts';
import { AuditTrail } from '../audit/audit-trail.ts';
import type { Caller } from '../request.ts';
import { clientAddress } from '../server/client-address.ts';

const readingMethods = new Set(['GET', 'HEAD', 'OPTIONS']);
/** The same refusal is recorded once in this time, in ms: whoever repeats it must not fill the log. */
const refusalMs = 10_000;
const refusalCapacity = 10_000;
const maxObjectChars = 500;

/**
 * Gives each request of a route with an action (`config.audit`) its trail, and lets no success leave that has not settled it. The
 * app does not start with a route that may change something and declares neither an action nor why it needs none. Refused calls of
 * members are recorded, too.
 */
export function registerAudit(app: FastifyInstance, services: ApiServices): void {
  const refusals = new LRUCache<string, true>({ max: refusalCapacity, ttl: refusalMs });
  app.decorateRequest('audit', null as unknown as AuditTrail);
  app.addHook('onRoute', (route) => {
    const isReading = [route.method].flat().every((method) => readingMethods.has(method.toUpperCase()));
    if (!isReading && route.config?.audit === undefined)
      throw new Error(`Route ${String(route.method)} ${route.url} does not declare its action in the audit log`);
  });
  app.addHook('onRequest', async (request) => {
    const action = actionOf(request);
    if (action) request.audit = new AuditTrail(sourceOf(request, services), action);
  });
  app.addHook('onSend', async (request, reply) => {
    if (request.audit && !request.audit.isSettled && reply.statusCode < 400)
      throw new Error(`${request.method} ${request.routeOptions.url} was not recorded in the audit log`);
  });
  app.addHook('onError', async (request, _reply, error) => {
    const action = actionOf(request);
    const { caller } = request;
    if (!action || !(error instanceof ForbiddenError) || !caller?.belongs) return;
    const params = request.params as Record<string, string | undefined>;
    const { organization = null } = params;
    const object = objectOf(params);
    const key = JSON.stringify([caller.tokenId, action, object]);
    if (organization === null || refusals.has(key)) return;
    refusals.set(key, true);
    await services.audit
      .recordRefusal(sourceOf(request, services), { action, organization, object, details: { reason: error.message } })
      .catch((failure: unknown) => request.log.error({ err: failure }, 'a refused call could not be recorded'));
  });
}

/** What a call is about, from its path: as in the event of a call that is not refused. */
function objectOf(params: Record<string, string | undefined>) {
  const { grant, group, hook, issuerId, login, organization, pack, policyId, project, role, stack, team, tokenId } =
    params;
  const parts = [organization, project, stack, pack, group, team, role, grant, hook].filter(
    (part) => part !== undefined,
  );
  const object = login ?? tokenId ?? issuerId ?? policyId ?? parts.join('/');
  return object.slice(0, maxObjectChars).toWellFormed().replaceAll('\0', '');
}

function actionOf(request: FastifyRequest): AuditAction | null {
  const audit = request.routeOptions.config.audit;
  return typeof audit === 'string' ? audit : null;
}

function sourceOf(request: FastifyRequest, { config }: ApiServices): AuditSource {
  const { caller, headers, id, lease, session } = request;
  const who = caller
    ? {
        signIn: signInOf(caller),
        userId: caller.userId,
        login: caller.login,
        tokenId: caller.tokenId,
        tokenName: caller.tokenName,
        grantedBy: grantedBy(request, caller),
        role: caller.role ?? (caller.siteAdmin ? 'site admin' : null),
      }
    : session
      ? {
          signIn: 'session' as const,
          userId: session.userId,
          login: session.login,
          role: session.siteAdmin ? 'site admin' : null,
        }
      : { signIn: lease ? ('lease' as const) : ('none' as const) };
  const address = clientAddress(request.raw, config.trustedProxies);
  return requestSource(who, { address, userAgent: headers['user-agent'], id });
}

function signInOf({ policyId, tokenKind }: Caller): AuditSource['signIn'] {
  if (policyId !== null) return 'id-token';
  return tokenKind === 'personal' ? 'token' : `${tokenKind}-token`;
}

/** What permits a call besides the membership of the token's user; null: nothing. */
function grantedBy({ routeOptions }: FastifyRequest, { facts, policyId, teamName, tokenKind }: Caller): string | null {
  if (policyId !== null) return `policy:${policyId}`;
  if (tokenKind === 'team') return `team:${teamName}`;
  if (tokenKind !== 'personal') return 'token';
  if (facts === null) return null;
  const access = routeOptions.config.access;
  if (access?.kind === 'organization') return null;
  // Stacks are created by routes without a permission of their own.
  const permission = access?.kind === 'stack' ? access.permission : 'write';
  return permits(facts.base, permission) ? null : 'grants';
}
