import type { FastifyReply } from 'fastify';

/** Raised when nobody waits for the response any more: the client has closed the connection, or has the whole response. */
export function clientGone({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController();
  if (raw.closed) gone.abort();
  else raw.once('close', () => gone.abort());
  return gone.signal;
}
