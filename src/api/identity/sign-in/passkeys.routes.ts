import { Type } from 'typebox';
import type { Config } from '../../../shared/platform/config/config.ts';
import type { RouteScope } from '../../platform/http/route-scope.ts';
import { clearFlowCookie, readFlowCookie, safeNext, setFlowCookie, setSessionCookie, visitOf } from './cookies.ts';
import { type PasskeyService, passkeySeconds } from './passkey-service.ts';
import { describedForm, pageTags, sessionCookie } from './send-page.ts';

export interface Services {
  readonly config: Config;
  readonly passkeys: PasskeyService;
}

const session = { kind: 'session' } as const;
const open = { kind: 'public' } as const;
const begins = { none: 'changes nothing until the browser answers' };
const Options = Type.Object({}, { additionalProperties: true });
/** The JSON form of the result of `navigator.credentials` in the browser. */
const Answer = Type.Object({ id: Type.String({ maxLength: 2_000 }) }, { additionalProperties: true });
const Done = Type.Object({ next: Type.String() });

/** The script of the pages calls these routes. */
export function registerPasskeyRoutes(app: RouteScope, { config, passkeys }: Services): void {
  app.post(
    '/account/passkeys/options',
    {
      config: {
        access: session,
        rate: 'held',
        audit: begins,
        anyAccept: true,
        described: { responses: { 200: Options }, errorStatuses: [403, 409] },
      },
      schema: { tags: pageTags, summary: 'Begin to add a passkey', security: sessionCookie },
    },
    async (request, reply) => {
      const { cookie, options } = await passkeys.beginAdding(request.session);
      setFlowCookie(reply, config, { value: cookie, seconds: passkeySeconds });
      return options;
    },
  );

  app.post(
    '/account/passkeys',
    {
      config: {
        access: session,
        rate: 'held',
        audit: 'passkey.add',
        anyAccept: true,
        described: { errorStatuses: [403, 409, 415] },
      },
      schema: {
        tags: pageTags,
        summary: 'Add a passkey',
        security: sessionCookie,
        body: Type.Object({ name: Type.String({ maxLength: 200 }), response: Answer }),
        response: { 200: Done },
      },
    },
    async (request, reply) => {
      const flowCookie = readFlowCookie(request, config);
      clearFlowCookie(reply, config);
      await passkeys.add(request.session, { ...request.body, flowCookie }, request.audit);
      return { next: '/account' };
    },
  );

  app.post(
    '/account/passkeys/remove',
    {
      config: {
        access: session,
        rate: 'held',
        audit: 'passkey.remove',
        body: 'form',
        anyAccept: true,
        described: { ...describedForm, errorStatuses: [403, 404, 415] },
      },
      schema: {
        tags: pageTags,
        summary: 'Remove a passkey',
        security: sessionCookie,
        consumes: ['application/x-www-form-urlencoded'],
        body: Type.Object({ passkey: Type.String({ maxLength: 2_000 }) }),
      },
    },
    async (request, reply) => {
      await passkeys.remove(request.session, request.body.passkey, request.audit);
      return reply.redirect('/account', 303);
    },
  );

  app.post(
    '/sign-in/passkey/options',
    {
      config: {
        access: open,
        rate: 'held',
        audit: begins,
        whileReadOnly: 'readers sign in',
        anyAccept: true,
        described: { responses: { 200: Options }, errorStatuses: [403, 429] },
      },
      schema: { tags: pageTags, summary: 'Begin to sign in with a passkey' },
    },
    async (request, reply) => {
      const { cookie, options } = await passkeys.beginSignIn(visitOf(request, config).address);
      setFlowCookie(reply, config, { value: cookie, seconds: passkeySeconds });
      return options;
    },
  );

  app.post(
    '/sign-in/passkey',
    {
      config: {
        access: open,
        rate: 'held',
        audit: 'session.begin',
        whileReadOnly: 'readers sign in',
        anyAccept: true,
        described: { errorStatuses: [401, 403, 415] },
      },
      schema: {
        tags: pageTags,
        summary: 'Sign in with a passkey',
        body: Type.Object({ response: Answer, next: Type.Optional(Type.String()) }),
        response: { 200: Done },
      },
    },
    async (request, reply) => {
      const flowCookie = readFlowCookie(request, config);
      clearFlowCookie(reply, config);
      const { next, response } = request.body;
      const cookies = await passkeys.signIn({ flowCookie, response }, visitOf(request, config), request.audit);
      setSessionCookie(reply, config, cookies);
      return { next: safeNext(next) };
    },
  );
}
