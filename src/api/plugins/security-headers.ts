import type { FastifyInstance, FastifyReply } from 'fastify';

/** Only the CLI and other programs are meant to read responses; a page for browsers allows itself what it needs. */
const headers = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
} as const;

/**
 * Lets browsers do nothing with any response. There is no Access-Control header, so pages of other sites cannot call the API. HSTS
 * is left to the proxy: it would apply to all ports of the host.
 */
export function registerSecurityHeaders(app: FastifyInstance): void {
  app.addHook('onRequest', async (_request, reply) => setSecurityHeaders(reply));
}

/** For responses to requests that reach no hook. */
export function setSecurityHeaders(reply: FastifyReply): void {
  void reply.headers(headers);
}

/** A policy for a page of ours whose only resource is this style sheet, given by its hash. */
export function pagePolicy(styleSha256: string): string {
  return headers['content-security-policy'].replace(';', `; style-src 'sha256-${styleSha256}';`);
}
