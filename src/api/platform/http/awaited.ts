import type { IncomingMessage } from 'node:http';
import { setImmediate as nextSlice } from 'node:timers/promises';
import { InvalidRequestError } from '../../../shared/platform/errors/errors.ts';

/**
 * Throws InvalidRequestError if the client has closed the connection. A frozen process that resumes finds calls in its sockets whose
 * clients have long gone to another replica. Call once the request has arrived completely.
 */
export async function assertAwaited({ socket }: IncomingMessage): Promise<void> {
  // The end of the connection follows the body in the kernel's buffer, so the first iteration may read only the body.
  for (let round = 0; round < 2; round++) await nextSlice();
  if (socket.destroyed || socket.readableEnded) throw disconnected();
}

/**
 * Calls `work` with a signal that fires when the client closes the connection. Node notices that only while it reads from the connection.
 */
export async function whileConnected<T>(
  { socket }: Pick<IncomingMessage, 'socket'>,
  work: (gone: AbortSignal) => Promise<T>,
): Promise<T> {
  const gone = new AbortController();
  const end = (): void => gone.abort(disconnected());
  if (socket.destroyed) end();
  socket.once('close', end);
  try {
    return await work(gone.signal);
  } finally {
    socket.off('close', end);
  }
}

function disconnected(): InvalidRequestError {
  return new InvalidRequestError('The client has disconnected');
}
