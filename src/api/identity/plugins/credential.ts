import type { FastifyRequest } from 'fastify';

/** `schemes`: in lower case. */
export function credential(request: FastifyRequest, schemes: readonly string[]): string | null {
  const header = request.headers.authorization ?? '';
  const space = header.indexOf(' ');
  if (space < 1 || !schemes.includes(header.slice(0, space).toLowerCase())) return null;
  const token = header.slice(space + 1).trim();
  return token === '' ? null : token;
}
