import { Type } from 'typebox';
import type { RouteScope } from '../../platform/http/route-scope.ts';
import { type CliLoginService, cliOrigin, readCliLogin } from './cli-login-service.ts';
import { renderCliLoginPage, renderWelcomePage } from './pages/cli-login-page.ts';
import { describedForm, describedPage, pageTags, sendPage, sessionCookie } from './send-page.ts';

export interface Services {
  readonly cliLogin: CliLoginService;
}

const CliLoginParameters = Type.Object({
  cliSessionPort: Type.Optional(Type.String()),
  cliSessionNonce: Type.Optional(Type.String()),
  cliSessionDescription: Type.Optional(Type.String()),
});

/** The pages that `pulumi login` opens (pkg/backend/httpstate/backend.go). */
export function registerCliLoginRoutes(app: RouteScope, { cliLogin }: Services): void {
  app.get(
    '/cli-login',
    {
      config: { access: { kind: 'session' }, rate: 'held', anyAccept: true, described: describedPage },
      schema: {
        tags: pageTags,
        summary: 'Ask whether to give the CLI a token',
        security: sessionCookie,
        querystring: CliLoginParameters,
      },
    },
    async (request, reply) => {
      const login = readCliLogin(request.query);
      // The answer to the form leads to the CLI.
      return sendPage(reply, renderCliLoginPage(login, request.session), { formTarget: cliOrigin(login) });
    },
  );

  app.post(
    '/cli-login',
    {
      config: {
        access: { kind: 'session' },
        rate: 'held',
        audit: 'token.create',
        body: 'form',
        anyAccept: true,
        described: describedForm,
      },
      schema: {
        tags: pageTags,
        summary: 'Create a token for the CLI and hand it over',
        security: sessionCookie,
        consumes: ['application/x-www-form-urlencoded'],
        body: CliLoginParameters,
      },
    },
    async (request, reply) => {
      const address = await cliLogin.allow(request.session, readCliLogin(request.body), request.audit);
      return reply.redirect(address, 303);
    },
  );

  app.get(
    '/welcome/cli',
    {
      config: { access: { kind: 'public' }, rate: 'held', anyAccept: true, described: describedPage },
      schema: { tags: pageTags, summary: 'Show that the CLI is logged in' },
    },
    async (_request, reply) => sendPage(reply, renderWelcomePage()),
  );
}
