import type { IncomingMessage } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { InvalidRequestError } from '../../shared/platform/errors/errors.ts';

/**
 * Throws InvalidRequestError when the client has closed the connection: a process that was frozen finds calls in its sockets
 * whose clients have long since turned elsewhere. To be asked once the request is all there.
 */
export async function assertAwaited({ socket }: IncomingMessage): Promise<void> {
  // The end of the connection stands behind the body in the kernel's buffer: one turn may end with the body.
  for (let turn = 0; turn < 2; turn++) await nextTurn();
  if (socket.destroyed || socket.readableEnded) throw new InvalidRequestError('The client has disconnected');
}
