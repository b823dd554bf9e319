import type { FastifyRequest } from 'fastify';

/** Whether the request expects a page rather than JSON. */
export function wantsPage({ headers }: FastifyRequest): boolean {
  return /\btext\/html\b/i.test(headers.accept ?? '');
}
