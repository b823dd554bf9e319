import type { Socket } from 'node:net';
import type { ErrorResponse } from '../../../shared/platform/protocol/errors.ts';
import type { OpenRequests } from './open-requests.ts';
import { rawResponse } from './raw-response.ts';
import { closeGracefully, isClosing } from './unread-bodies.ts';

const errorResponses: Readonly<Record<string, ErrorResponse>> = {
  ERR_HTTP_REQUEST_TIMEOUT: { code: 408, message: 'The request was not complete in time' },
  HPE_HEADER_OVERFLOW: { code: 431, message: 'The URL and the headers of the request are too large' },
};
const malformedRequest: ErrorResponse = { code: 400, message: 'This is not a valid HTTP request' };

/**
 * Responds to input that never became a request, in the format of all other errors, and closes the connection. Earlier requests on
 * the connection get their own responses first, and nothing is inserted into a response that is already being sent.
 */
export function respondToClientError(
  error: Error & { code?: string },
  socket: Socket,
  { requests, discardMs }: { requests: OpenRequests; discardMs: number },
): void {
  if (socket.destroyed || isClosing(socket)) return;
  if (error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const open = requests.of(socket);
  const complete = open.filter(({ request }) => request.complete);
  if (complete.length > 0) {
    complete.at(-1)?.response.once('finish', () => closeGracefully(socket, discardMs));
  } else if (open.some(({ response }) => response.headersSent)) {
    socket.destroy(error);
  } else {
    if (socket.writable) socket.write(rawResponse(errorResponses[error.code ?? ''] ?? malformedRequest));
    closeGracefully(socket, discardMs);
  }
}
