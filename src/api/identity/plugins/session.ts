import cookie from '@fastify/cookie';
import type { FastifyInstance, RouteOptions } from 'fastify';
import type { Config } from '../../../shared/platform/config/config.ts';
import { UnauthenticatedError } from '../../../shared/platform/errors/errors.ts';
import { prepareError, sendError } from '../../platform/http/errors.ts';
import type { Session } from '../../platform/http/request.ts';
import { pageHeaders, renderErrorPage } from '../../platform/pages/page.ts';
import { wantsPage } from '../../platform/pages/wants-page.ts';
import { assertSameOrigin, readSessionCookie } from '../sign-in/cookies.ts';
import type { SessionService } from '../sign-in/session-service.ts';

/** What the routes call. */
export interface Services {
  readonly config: Config;
  readonly sessions: SessionService;
}

/**
 * Access to the pages for users, by the session cookie. A changing request must come from one of our pages. A user who is not signed
 * in and requests a page is redirected to the sign-in page.
 */
export async function registerSession(app: FastifyInstance, { config, sessions }: Services): Promise<void> {
  await app.register(cookie);
  app.decorateRequest('session', null as unknown as Session);
  app.addHook('onRoute', assertPageAccess);
  app.setErrorHandler((error, request, reply) => {
    if (!wantsPage(request)) return sendError(error, request, reply);
    const { message, status } = prepareError(error, request, reply);
    return reply.code(status).headers(pageHeaders()).type('text/html; charset=utf-8').send(renderErrorPage(message));
  });
  app.addHook('onRequest', async (request, reply) => {
    if (request.is404) return undefined;
    const isReading = request.method === 'GET' || request.method === 'HEAD';
    if (!isReading) assertSameOrigin(request, config);
    if (request.routeOptions.config.access?.kind !== 'session') return undefined;
    const session = await sessions.find(readSessionCookie(request, config));
    if (session) request.session = session;
    else if (isReading && wantsPage(request))
      return reply.redirect(`/sign-in?next=${encodeURIComponent(request.url)}`, 303);
    else throw new UnauthenticatedError('You are not signed in, or your session has ended');
    return undefined;
  });
}

function assertPageAccess({ config, method, url }: RouteOptions): void {
  const kind = config?.access?.kind;
  if (kind !== 'public' && kind !== 'session')
    throw new Error(`Route ${String(method)} ${url} does not declare whether it needs a signed-in user`);
}
