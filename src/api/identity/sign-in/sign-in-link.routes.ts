import { Type } from 'typebox';
import type { Config } from '../../../shared/platform/config/config.ts';
import { UnauthenticatedError } from '../../../shared/platform/errors/errors.ts';
import type { RouteScope } from '../../platform/http/route-scope.ts';
import { wantsPage } from '../../platform/pages/wants-page.ts';
import { setSessionCookie, visitOf } from './cookies.ts';
import { renderSignInLinkPage } from './pages/sign-in-link-page.ts';
import { describedForm, describedPage, pageTags, sendPage } from './send-page.ts';
import type { SignInLinkService } from './sign-in-link-service.ts';

export interface Services {
  readonly config: Config;
  readonly signInLinks: SignInLinkService;
}

/** The link's secret is in the fragment of the address, so no log and no preview gets it. Only the click on the page uses the link up. */
export function registerSignInLinkRoutes(app: RouteScope, { config, signInLinks }: Services): void {
  app.get(
    '/sign-in/link',
    {
      config: { access: { kind: 'public' }, rate: 'held', anyAccept: true, described: describedPage },
      schema: { tags: pageTags, summary: 'Show the page of a sign-in link' },
    },
    async (_request, reply) => sendPage(reply, renderSignInLinkPage()),
  );

  app.post(
    '/sign-in/link',
    {
      config: {
        access: { kind: 'public' },
        rate: 'held',
        audit: 'session.begin',
        whileReadOnly: 'readers sign in',
        body: 'form',
        anyAccept: true,
        described: { ...describedForm, errorStatuses: [401, 403, 415] },
      },
      schema: {
        tags: pageTags,
        summary: 'Sign in with a link',
        consumes: ['application/x-www-form-urlencoded'],
        body: Type.Object({ link: Type.String({ maxLength: 100 }) }),
      },
    },
    async (request, reply) => {
      const begun = await signInLinks
        .signIn(request.body.link.trim(), visitOf(request, config), request.audit)
        .catch((error: unknown) => {
          if (error instanceof UnauthenticatedError && wantsPage(request)) return error;
          throw error;
        });
      if (begun instanceof Error)
        return sendPage(reply, renderSignInLinkPage({ problem: begun.message }), { status: begun.status });
      setSessionCookie(reply, config, begun);
      return reply.redirect('/account', 303);
    },
  );
}
