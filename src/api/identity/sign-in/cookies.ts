import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Config } from '../../../shared/platform/config/config.ts';
import { ForbiddenError } from '../../../shared/platform/errors/errors.ts';
import { clientAddress } from '../../platform/server/client-address.ts';
import { knownBrowserSeconds } from './known-browsers.ts';
import type { BegunSession, Visit } from './session-service.ts';

function isSecure({ publicUrl }: Pick<Config, 'publicUrl'>): boolean {
  return publicUrl.startsWith('https:');
}

/** Browsers accept a `__Host-` name only over HTTPS, from this host and for all paths, so no other host can set the cookie. */
function cookieName(config: Pick<Config, 'publicUrl'>): string {
  return isSecure(config) ? '__Host-holdfast' : 'holdfast';
}

export function readSessionCookie(request: FastifyRequest, config: Pick<Config, 'publicUrl'>): string | null {
  return request.cookies[cookieName(config)] ?? null;
}

/** SameSite=Lax: links from other sites keep people signed in; forms of other sites do not send the cookie. */
export function setSessionCookie(
  reply: FastifyReply,
  config: Pick<Config, 'publicUrl' | 'sessions'>,
  { browser, session }: BegunSession,
): void {
  const maxAge = config.sessions.maxSeconds;
  void reply.setCookie(cookieName(config), session, { ...cookieOptions(config), maxAge });
  void reply.setCookie(browserName(config), browser, { ...cookieOptions(config), maxAge: knownBrowserSeconds });
}

/** Identifies a browser. The cookie stays when the session ends. */
function browserName(config: Pick<Config, 'publicUrl'>): string {
  return `${cookieName(config)}-browser`;
}

export function clearSessionCookie(reply: FastifyReply, config: Pick<Config, 'publicUrl'>): void {
  void reply.clearCookie(cookieName(config), cookieOptions(config));
}

/** The cookie of a sign-in in progress. */
function flowName(config: Pick<Config, 'publicUrl'>): string {
  return `${cookieName(config)}-flow`;
}

export function readFlowCookie(request: FastifyRequest, config: Pick<Config, 'publicUrl'>): string | null {
  return request.cookies[flowName(config)] ?? null;
}

export function setFlowCookie(
  reply: FastifyReply,
  config: Pick<Config, 'publicUrl'>,
  { seconds, value }: { readonly value: string; readonly seconds: number },
): void {
  void reply.setCookie(flowName(config), value, { ...cookieOptions(config), maxAge: seconds });
}

export function clearFlowCookie(reply: FastifyReply, config: Pick<Config, 'publicUrl'>): void {
  void reply.clearCookie(flowName(config), cookieOptions(config));
}

function cookieOptions(config: Pick<Config, 'publicUrl'>) {
  return { path: '/', httpOnly: true, secure: isSecure(config), sameSite: 'lax' } as const;
}

export function visitOf(request: FastifyRequest, config: Config): Visit {
  return {
    address: clientAddress(request.raw, config.trustedProxies),
    userAgent: request.headers['user-agent'] ?? '',
    cookie: readSessionCookie(request, config),
    marks: request.cookies[browserName(config)] ?? null,
  };
}

/**
 * A changing request must come from one of our pages. Browsers that send neither header are too old to be protected; programs use tokens.
 */
export function assertSameOrigin({ headers, host }: FastifyRequest, { publicUrl }: Pick<Config, 'publicUrl'>): void {
  const { origin } = headers;
  const site = headers['sec-fetch-site'];
  const from = hostOf(origin ?? '');
  const isOwn = origin === undefined || (from !== '' && [new URL(publicUrl).host, host].includes(from));
  if ((origin === undefined && site === undefined) || !isOwn || (site !== undefined && site !== 'same-origin'))
    throw new ForbiddenError('This request does not come from a page of this server');
}

function hostOf(origin: string): string {
  return URL.canParse(origin) ? new URL(origin).host : '';
}

/** A path on this server; otherwise `/`, the web UI. */
export function safeNext(next: string | undefined): string {
  return next !== undefined && next.length <= 2_000 && /^\/(?![/\\])[!-[\]-~]*$/.test(next) ? next : '/';
}
