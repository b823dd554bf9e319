import { Readable } from 'node:stream';
import cookie from '@fastify/cookie';
import { fetchRequestHandler } from '@trpc/server/adapters/fetch';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ForbiddenError, UnauthenticatedError, UnsupportedMediaTypeError } from '../shared/platform/errors/errors.ts';
import type { CallTarget } from './access/authorize-call.ts';
import { type Holder, nowhere, type ProcedureServices, RequestCalls } from './access/procedures/context.ts';
import { shapeOf, shapeOfReply } from './access/procedures/errors.ts';
import { assertDeclared } from './access/procedures/trpc.ts';
import type { Authenticator } from './identity/credentials/authenticator.ts';
import { credential } from './identity/plugins/credential.ts';
import { assertSameOrigin, readSessionCookie } from './identity/sign-in/cookies.ts';
import type { SessionService } from './identity/sign-in/session-service.ts';
import type { UserService } from './identity/user-service.ts';
import { Refusals } from './platform/audit-trail/refusals.ts';
import { prepareError } from './platform/http/errors.ts';
import { type BodyParts, receiveBody } from './platform/http/request-body.ts';
import { ResponseMemory } from './platform/http/response-memory.ts';
import { clientGone } from './platform/server/client-gone.ts';
import { appRouter } from './router.ts';
import { registerStacksCsv } from './stacks/stacks-csv.routes.ts';
import { registerStateDownload } from './state/state-download.routes.ts';
import { registerDeliveryCsv } from './statistics/delivery-csv.routes.ts';

type DashboardServices = ProcedureServices &
  BodyParts & { readonly credentials: Authenticator; readonly sessions: SessionService; readonly users: UserService };

const endpoint = '/trpc';
/** The inputs of one request. */
const maxInputBytes = 64 * 1024;
/** Calls in one request. */
const maxCalls = 20;
const lineFeed = 10;

declare module 'fastify' {
  interface FastifyRequest {
    holder: Holder;
  }
}

/** Procedures for users with a session and for holders of tokens. */
export async function registerTrpc(scope: FastifyInstance, services: DashboardServices): Promise<void> {
  assertDeclared(appRouter);
  const refusals = new Refusals(services);
  await scope.register(cookie);
  scope.decorateRequest('holder', null as unknown as Holder);
  scope.setErrorHandler((error, request, reply) => {
    const { status, ...reported } = prepareError(error, request, reply);
    const body = { error: shapeOfReply({ status, ...reported }, error) };
    return reply.code(status).type('application/json').serializer(JSON.stringify).send(body);
  });
  // Checked before any byte of the inputs is read.
  scope.addHook('onRequest', async (request) => {
    if (request.is404) return;
    request.holder = await findHolder(request, services);
  });
  const config = { access: { kind: 'procedures' }, rate: 'held', body: 'payload' } as const;
  const memory = new ResponseMemory();
  const handler = (request: FastifyRequest, reply: FastifyReply) => {
    const responseMemory = memory.open();
    reply.raw.once('finish', () => responseMemory.end()).once('close', () => responseMemory.end());
    const gone = clientGone(reply);
    const calls = new RequestCalls(services, request, request.holder, refusals, { memory: responseMemory, gone });
    return answer(request, reply, services, { calls, gone });
  };
  scope.get(`${endpoint}/:procedures`, { config, exposeHeadRoute: false, schema: { hide: true } }, handler);
  registerStacksCsv(scope, services, refusals);
  registerDeliveryCsv(scope, services, refusals);
  scope.post(
    `${endpoint}/:procedures`,
    { config: { ...config, audit: { none: 'procedures declare their actions' } }, schema: { hide: true } },
    handler,
  );
  registerStateDownload(scope, services, refusals);
}

/** Throws UnauthenticatedError, and ForbiddenError for cross-site requests. */
async function findHolder(request: FastifyRequest, services: DashboardServices): Promise<Holder> {
  const { config, credentials, sessions, users } = services;
  if (request.headers.authorization !== undefined) {
    const token = credential(request, ['token', 'bearer']);
    if (token === null) throw new UnauthenticatedError('This call needs an API token: Authorization: token <token>');
    const findAt = async (target: CallTarget) => {
      const caller = await credentials.findCaller(request.raw, token, target);
      if (!caller) throw new UnauthenticatedError('The API token is not valid: unknown, revoked or expired');
      return caller;
    };
    const caller = await findAt(nowhere);
    if (caller.tokenStale) await users.touchToken(caller.tokenId);
    return { caller, findAt, confirm: async () => void (await findAt(nowhere)) };
  }
  assertOwnPage(request, services);
  const value = readSessionCookie(request, config);
  const session = await sessions.find(value);
  if (!session) throw new UnauthenticatedError('You are not signed in, or your session has ended');
  const findAt: Holder['findAt'] = (target) => sessions.getCaller(session, target);
  return { caller: await findAt(nowhere), findAt, confirm: () => sessions.confirm(value) };
}

/** Browsers send the session cookie with requests of other pages of the same site, too. */
function assertOwnPage(request: FastifyRequest, { config }: DashboardServices): void {
  if (request.method !== 'GET') assertSameOrigin(request, config);
  const site = request.headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none')
    throw new ForbiddenError('This request does not come from a page of this server');
}

async function answer(
  request: FastifyRequest,
  reply: FastifyReply,
  services: DashboardServices,
  { calls, gone }: { readonly calls: RequestCalls; readonly gone: AbortSignal },
): Promise<FastifyReply> {
  const body = request.method === 'POST' ? await readInputs(request, services) : null;
  const headers = new Headers({ 'content-type': 'application/json' });
  const lastEventId = request.headers['last-event-id'];
  if (typeof lastEventId === 'string') headers.set('last-event-id', lastEventId);
  const response = await fetchRequestHandler({
    endpoint,
    router: appRouter,
    // Only the path and the query matter.
    req: new Request(new URL(request.url, 'http://localhost'), {
      method: request.method,
      headers,
      body,
      signal: gone,
    }),
    createContext: () => ({ services, request: calls }),
    maxBatchSize: maxCalls,
    // Inputs may be too long for a URL.
    allowMethodOverride: true,
    responseMeta: ({ errors }) => ({ headers: retryHeaders(errors) }),
  }).finally(() => calls.end());
  void reply.code(response.status).headers(Object.fromEntries(response.headers));
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false;
  if (isStream && response.body) return reply.send(Readable.from(wholeEvents(response.body), { highWaterMark: 1 }));
  return reply.send(await response.text());
}

function retryHeaders(errors: readonly Error[]): Headers {
  const seconds = errors.map((error) => shapeOf(error, null).data.retryAfterSeconds ?? 0);
  const latest = Math.max(0, ...seconds);
  return new Headers(latest === 0 ? {} : { 'retry-after': String(latest) });
}

/** tRPC writes an event in several chunks, which would become separate packets. */
async function* wholeEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer, void> {
  let parts: Uint8Array[] = [];
  for await (const part of body) {
    parts.push(part);
    if (part.at(-1) !== lineFeed || part.at(-2) !== lineFeed) continue;
    yield Buffer.concat(parts);
    parts = [];
  }
  if (parts.length > 0) yield Buffer.concat(parts);
}

async function readInputs(request: FastifyRequest, services: DashboardServices): Promise<string> {
  if (!/^application\/json *(;|$)/i.test(request.headers['content-type'] ?? ''))
    throw new UnsupportedMediaTypeError('Procedures take JSON: application/json');
  const { body, release } = await receiveBody(services, request, maxInputBytes, request.holder.caller);
  try {
    return body.toString('utf8');
  } finally {
    release();
  }
}
