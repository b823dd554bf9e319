import { Type } from 'typebox';
import type { Config } from '../../../shared/platform/config/config.ts';
import type { RouteScope } from '../../platform/http/route-scope.ts';
import { clearSessionCookie, setSessionCookie, visitOf } from './browser.ts';
import { describedForm, describedPage, pageTags, sendPage, sessionCookie } from './page-routes.ts';
import { renderAccountPage } from './pages/account-page.ts';
import type { PasskeyService } from './passkey-service.ts';
import type { PasswordService } from './password-service.ts';
import type { SessionService } from './session-service.ts';

/** What the routes call. */
export interface Services {
  readonly config: Config;
  readonly passkeys: PasskeyService;
  readonly passwords: PasswordService;
  readonly sessions: SessionService;
}

const form = { access: { kind: 'session' }, rate: 'held', body: 'form', anyAccept: true } as const;
const described = { tags: pageTags, security: sessionCookie, consumes: ['application/x-www-form-urlencoded'] };

/** The page of the person who is signed in: sessions and password. */
export function registerAccountRoutes(app: RouteScope, { config, passkeys, passwords, sessions }: Services): void {
  app.get(
    '/account',
    {
      config: { access: { kind: 'session' }, rate: 'held', anyAccept: true, described: describedPage },
      schema: { tags: pageTags, summary: 'Show the own sessions', security: sessionCookie },
    },
    async ({ session }, reply) => {
      const [list, hasPassword] = [await sessions.list(session), await passwords.hasPassword(session)];
      return sendPage(
        reply,
        renderAccountPage({
          session,
          sessions: list,
          hasPassword,
          passkeys: passkeys.isAvailable ? await passkeys.list(session) : null,
        }),
      );
    },
  );

  app.post(
    '/account/end-session',
    {
      config: { ...form, audit: 'session.end', described: { ...describedForm, errorStatuses: [403, 404, 415] } },
      schema: { ...described, summary: 'End one of the own sessions', body: Type.Object({ session: Type.String() }) },
    },
    async (request, reply) => {
      await sessions.end(request.session, request.body.session, request.audit);
      return reply.redirect('/account', 303);
    },
  );

  app.post(
    '/account/sign-out-everywhere',
    {
      config: {
        access: { kind: 'session' },
        rate: 'held',
        anyAccept: true,
        audit: 'session.end',
        described: describedForm,
      },
      schema: { tags: pageTags, summary: 'End all own sessions', security: sessionCookie },
    },
    async (request, reply) => {
      await sessions.endAll(request.session, request.audit);
      clearSessionCookie(reply, config);
      return reply.redirect('/sign-in', 303);
    },
  );

  app.post(
    '/account/password',
    {
      config: { ...form, audit: 'password.set', described: { ...describedForm, errorStatuses: [403, 415, 429] } },
      schema: {
        ...described,
        summary: 'Change the own password, which ends all other sessions',
        body: Type.Object({
          present: Type.String({ maxLength: 2_000 }),
          next: Type.String({ maxLength: 2_000 }),
        }),
      },
    },
    async (request, reply) => {
      const visit = visitOf(request, config);
      const cookies = await passwords.change(request.session, request.body, visit, request.audit);
      setSessionCookie(reply, config, cookies);
      return reply.redirect('/account', 303);
    },
  );
}
