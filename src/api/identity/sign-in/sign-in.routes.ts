import { Type } from 'typebox';
import type { Config } from '../../../shared/platform/config/config.ts';
import { TooManyRequestsError, UnauthenticatedError } from '../../../shared/platform/errors/errors.ts';
import type { RouteScope } from '../../platform/http/route-scope.ts';
import { scriptAsset, styleAsset } from '../../platform/pages/page.ts';
import { wantsPage } from '../../platform/pages/wants-page.ts';
import { clientGone } from '../../platform/server/client-gone.ts';
import { clearSessionCookie, readSessionCookie, safeNext, setSessionCookie, visitOf } from './cookies.ts';
import type { OidcService } from './oidc-service.ts';
import { renderSignInPage } from './pages/sign-in-page.ts';
import type { PasskeyService } from './passkey-service.ts';
import type { PasswordService } from './password-service.ts';
import { describedForm, describedPage, pageTags, sendPage, sessionCookie } from './send-page.ts';
import type { SessionService } from './session-service.ts';

export interface Services {
  readonly config: Config;
  readonly passkeys: PasskeyService;
  readonly passwords: PasswordService;
  readonly provider: OidcService;
  readonly sessions: SessionService;
}

const Next = Type.Optional(Type.String());
const assetSeconds = 300;

export function registerSignInRoutes(
  app: RouteScope,
  { config, passkeys, passwords, provider, sessions }: Services,
): void {
  const ways = { provider: provider.name, hasPasskeys: passkeys.isAvailable };
  app.get(
    '/sign-in',
    {
      config: { access: { kind: 'public' }, rate: 'held', anyAccept: true, described: describedPage },
      schema: { tags: pageTags, summary: 'Show the sign-in page', querystring: Type.Object({ next: Next }) },
    },
    async (request, reply) => {
      const next = safeNext(request.query.next);
      const session = await sessions.find(readSessionCookie(request, config));
      return sendPage(reply, renderSignInPage({ next, ...ways, present: session?.login ?? null }));
    },
  );

  app.post(
    '/sign-in',
    {
      config: {
        access: { kind: 'public' },
        rate: 'held',
        audit: 'session.begin',
        whileReadOnly: 'readers sign in',
        body: 'form',
        anyAccept: true,
        described: { ...describedForm, errorStatuses: [401, 403, 415, 429] },
      },
      schema: {
        tags: pageTags,
        summary: 'Sign in with a password',
        consumes: ['application/x-www-form-urlencoded'],
        body: Type.Object({
          login: Type.String({ maxLength: 300 }),
          password: Type.String({ maxLength: 2_000 }),
          next: Next,
        }),
      },
    },
    async (request, reply) => {
      const { login, password } = request.body;
      const next = safeNext(request.body.next);
      const signedIn = await passwords
        .signIn({ login, password, gone: clientGone(reply) }, visitOf(request, config), request.audit)
        .catch(refusalOf);
      if (!(signedIn instanceof Error)) {
        setSessionCookie(reply, config, signedIn);
        return reply.redirect(next, 303);
      }
      if (!wantsPage(request)) throw signedIn;
      if (signedIn.retryAfterSeconds !== undefined) void reply.header('retry-after', signedIn.retryAfterSeconds);
      return sendPage(reply, renderSignInPage({ login, next, problem: signedIn.message, ...ways }), {
        status: signedIn.status,
      });
    },
  );

  app.post(
    '/sign-out',
    {
      config: {
        access: { kind: 'session' },
        rate: 'held',
        audit: 'session.end',
        whileReadOnly: 'readers sign out',
        anyAccept: true,
        described: describedForm,
      },
      schema: { tags: pageTags, summary: 'Sign out', security: sessionCookie },
    },
    async (request, reply) => {
      await sessions.end(request.session, request.session.id, request.audit);
      clearSessionCookie(reply, config);
      return reply.redirect('/sign-in', 303);
    },
  );

  for (const { path, text, type } of [styleAsset, scriptAsset])
    app.get(
      path,
      {
        config: {
          access: { kind: 'public' },
          rate: 'held',
          anyAccept: true,
          described: { responses: { 200: Type.String() }, produces: [type.split(';')[0] as string] },
        },
        schema: { tags: pageTags, summary: `Get a file of the pages (${path})` },
      },
      async (_request, reply) => reply.header('cache-control', `public, max-age=${assetSeconds}`).type(type).send(text),
    );
}

/** Shows refusals on the page itself; other errors are handled elsewhere. */
function refusalOf(error: unknown): UnauthenticatedError | TooManyRequestsError {
  if (error instanceof UnauthenticatedError || error instanceof TooManyRequestsError) return error;
  throw error;
}
