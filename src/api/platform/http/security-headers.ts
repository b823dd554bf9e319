import type { FastifyInstance, FastifyReply } from 'fastify';
import { securityHeaders } from '../../../shared/platform/http/security-headers.ts';

/** Denies browsers every use of a response. A page for browsers allows the uses that it needs. */
export function registerSecurityHeaders(app: FastifyInstance): void {
  app.addHook('onRequest', (_request, reply, done) => {
    setSecurityHeaders(reply);
    done();
  });
}

/** Sets the headers of responses to requests that reach no hook. */
export function setSecurityHeaders(reply: FastifyReply): void {
  void reply.headers(securityHeaders);
}

/** The page's only resource is this style sheet. */
export function pagePolicy(styleSha256: string): string {
  return securityHeaders['content-security-policy'].replace(';', `; style-src 'sha256-${styleSha256}';`);
}
