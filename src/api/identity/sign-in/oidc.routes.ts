import { Type } from 'typebox';
import type { Config } from '../../../shared/platform/config/config.ts';
import type { RouteScope } from '../../platform/http/route-scope.ts';
import { clearFlowCookie, readFlowCookie, safeNext, setFlowCookie, setSessionCookie, visitOf } from './cookies.ts';
import { callbackPath, flowSeconds, type OidcService } from './oidc-service.ts';
import { pageTags } from './send-page.ts';

export interface Services {
  readonly config: Config;
  readonly provider: OidcService;
}

const access = { kind: 'public' } as const;
const responses = { 303: Type.Null() };

export function registerOidcRoutes(app: RouteScope, { config, provider }: Services): void {
  app.get(
    '/sign-in/provider',
    {
      config: { access, rate: 'held', anyAccept: true, described: { responses, errorStatuses: [404, 429] } },
      schema: {
        tags: pageTags,
        summary: 'Go to the identity provider',
        querystring: Type.Object({ next: Type.Optional(Type.String()) }),
      },
    },
    async (request, reply) => {
      const { address, cookie } = await provider.begin(safeNext(request.query.next), visitOf(request, config).address);
      setFlowCookie(reply, config, { value: cookie, seconds: flowSeconds });
      return reply.redirect(address, 303);
    },
  );

  app.get(
    callbackPath,
    {
      config: {
        access,
        rate: 'held',
        audit: 'session.begin',
        anyAccept: true,
        described: { responses, errorStatuses: [401, 403, 404] },
      },
      schema: { tags: pageTags, summary: 'Return from the identity provider' },
    },
    async (request, reply) => {
      const flowCookie = readFlowCookie(request, config);
      clearFlowCookie(reply, config);
      const at = request.url.indexOf('?');
      const search = at < 0 ? '' : request.url.slice(at);
      const { cookies, next } = await provider.finish({ flowCookie, search }, visitOf(request, config), request.audit);
      setSessionCookie(reply, config, cookies);
      return reply.redirect(next, 303);
    },
  );
}
