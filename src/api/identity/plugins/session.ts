import cookie from '@fastify/cookie';
import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify';
import { UnauthenticatedError } from '../../../shared/platform/errors/errors.ts';
import { prepareError, sendError } from '../../platform/http/errors.ts';
import type { Session } from '../../platform/http/request.ts';
import { renderErrorPage } from '../../platform/pages/page.ts';
import { wantsPage } from '../../platform/pages/wants-page.ts';
import { accountPageOf, type registerAccountRoutes } from '../sign-in/account.routes.ts';
import { assertSameOrigin, readSessionCookie, safeNext } from '../sign-in/cookies.ts';
import { sendPage } from '../sign-in/send-page.ts';

/** The services that the routes call, and the account page shows. */
export type Services = Parameters<typeof registerAccountRoutes>[1];

/**
 * Checks access by the session cookie. A changing request must come from one of our pages. A request for a page without a session leads to
 * the sign-in page.
 */
export async function registerSession(app: FastifyInstance, services: Services): Promise<void> {
  const { config, sessions } = services;
  await app.register(cookie);
  app.decorateRequest('session', null as unknown as Session);
  app.addHook('onRoute', assertPageAccess);
  app.setErrorHandler(async (error, request, reply) => {
    if (!wantsPage(request)) return sendError(error, request, reply);
    const { message, status } = prepareError(error, request, reply);
    // The session may have ended meanwhile. After a failure of the server, the database is not queried again.
    const session = request.session && status < 500 ? await sessions.find(readSessionCookie(request, config)) : null;
    const isOfAccount = session !== null && request.method === 'POST' && request.url.startsWith('/account');
    const page = isOfAccount
      ? await accountPageOf(services, session, message)
      : renderErrorPage(message, session === null ? signInLink(request, status) : null);
    return sendPage(reply, page, { status });
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

/** From a form on one of our pages, it leads back to the form's page. */
function signInLink({ headers: { referer = '' }, method }: FastifyRequest, status: number): string {
  const from = method === 'POST' && status === 401 ? URL.parse(referer) : null;
  if (from === null) return '/sign-in';
  // After a refusal, the account page is shown at the address of its form, which accepts only forms.
  const next = from.pathname.startsWith('/account/') ? '/account' : from.pathname + from.search;
  return `/sign-in?next=${encodeURIComponent(safeNext(next))}`;
}

function assertPageAccess({ config, method, url }: RouteOptions): void {
  const kind = config?.access?.kind;
  if (kind !== 'public' && kind !== 'session')
    throw new Error(`Route ${String(method)} ${url} does not declare whether it needs a signed-in user`);
}
