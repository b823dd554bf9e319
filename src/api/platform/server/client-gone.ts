import type { FastifyReply } from 'fastify';

/** Aborted when nobody waits any more: the client has closed the connection, or has the whole response. */
export function clientGone({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController();
  if (raw.closed) gone.abort();
  else raw.once('close', () => gone.abort());
  return gone.signal;
}

/**
 * Calls `then` if the client closes the connection before it has the whole response, or the response is no success. A response counts as
 * delivered once the operating system has it.
 */
export function whenUndelivered({ raw }: FastifyReply, then: () => void): void {
  if (raw.closed) {
    then();
    return;
  }
  const { socket } = raw;
  let isDelivered = false;
  // Also emitted for the bytes that a destroyed socket discards.
  raw.once('finish', () => {
    isDelivered = socket?.destroyed !== true && raw.statusCode < 300;
  });
  raw.once('close', () => {
    if (!isDelivered) then();
  });
}
