import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type AuditSource, requestSource } from '../../../shared/audit/audit-event.ts';
import type { Config } from '../../../shared/platform/config/config.ts';
import { ForbiddenError } from '../../../shared/platform/errors/errors.ts';
import type { ReadOnlyMode } from '../../../shared/platform/read-only/read-only-mode.ts';
import { clientAddress } from '../server/client-address.ts';
import { AuditTrail } from './audit-trail.ts';
import { whoCalls } from './calling-source.ts';
import { actionOf } from './declared-action.ts';
import { type RefusalRecorder, Refusals } from './refusals.ts';

export interface Services {
  readonly audit: RefusalRecorder;
  readonly config: Config;
  readonly readOnly: ReadOnlyMode;
}

const readingMethods = new Set(['GET', 'HEAD', 'OPTIONS']);
const maxObjectChars = 500;

/**
 * Gives each request of a route with an action (`config.audit`) its trail. A response that reports success fails if its trail is not
 * settled. The app does not start if a route that may change something declares neither an action nor why it needs none. Refused calls of
 * members are recorded, too.
 */
export function registerAudit(app: FastifyInstance, services: Services): void {
  const refusals = new Refusals(services);
  app.decorateRequest('audit', null as unknown as AuditTrail);
  app.addHook('onRoute', (route) => {
    const isReading = [route.method].flat().every((method) => readingMethods.has(method.toUpperCase()));
    if (!isReading && route.config?.audit === undefined)
      throw new Error(`Route ${String(route.method)} ${route.url} does not declare its action in the audit log`);
  });
  app.addHook('onRequest', (request, _reply, done) => {
    const action = actionOf(request);
    if (action) request.audit = new AuditTrail(sourceOf(request, services), action, services.readOnly);
    done();
  });
  app.addHook('onSend', (request, reply, _payload, done) => {
    const isMissing = request.audit && !request.audit.isSettled && reply.statusCode < 400;
    const { method, routeOptions } = request;
    if (isMissing) done(new Error(`${method} ${routeOptions.url} was not recorded in the audit log`));
    else done();
  });
  app.addHook('onError', async (request, _reply, error) => {
    const { caller } = request;
    // Some calls are refused before they get a trail.
    const action = request.audit ? request.audit.action : actionOf(request);
    if (!action || !(error instanceof ForbiddenError) || !caller?.belongs) return;
    const params = request.params as Record<string, string | undefined>;
    const { organization = null } = params;
    const object = objectOf(params);
    if (organization === null) return;
    const event = { action, organization, object, details: { reason: error.message } };
    await refusals.record(sourceOf(request, services), caller, event, request.log);
  });
}

/** The same object as in the event of an accepted call. */
function objectOf(params: Record<string, string | undefined>) {
  const { grant, group, hook, issuerId, login, organization, pack, policyId, project, role, stack, team, tokenId } =
    params;
  const parts = [organization, project, stack, pack, group, team, role, grant, hook].filter(
    (part) => part !== undefined,
  );
  const object = login ?? tokenId ?? issuerId ?? policyId ?? parts.join('/');
  return object.slice(0, maxObjectChars).toWellFormed().replaceAll('\0', '');
}

function sourceOf(request: FastifyRequest, { config }: Services): AuditSource {
  const { caller, headers, id, lease, routeOptions, session } = request;
  const who = caller
    ? whoCalls(caller, routeOptions.config.access)
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
