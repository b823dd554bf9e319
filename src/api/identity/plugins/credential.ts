import type { FastifyRequest } from 'fastify';

/** Returns the Authorization header's value after one of the `schemes` (lower case), or null if it uses none of them. */
export function credential(request: FastifyRequest, schemes: readonly string[]): string | null {
  const header = request.headers.authorization ?? '';
  const space = header.indexOf(' ');
  if (space < 1 || !schemes.includes(header.slice(0, space).toLowerCase())) return null;
  const token = header.slice(space + 1).trim();
  return token === '' ? null : token;
}
