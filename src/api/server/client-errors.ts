import type { Socket } from 'node:net';
import type { ErrorResponse } from '../../shared/protocol/errors.ts';
import type { OpenRequests } from './open-requests.ts';
import { rawResponse } from './raw-response.ts';
import { isLeaving, leave } from './unread-bodies.ts';

const answers: Readonly<Record<string, ErrorResponse>> = {
  ERR_HTTP_REQUEST_TIMEOUT: { code: 408, message: 'The request was not complete in time' },
  HPE_HEADER_OVERFLOW: { code: 431, message: 'The URL and the headers of the request are too large' },
};
const malformed: ErrorResponse = { code: 400, message: 'This is not a valid HTTP request' };

/**
 * Answers what never became a request, in the shape of all other errors; the connection ends with it. Requests before it on the
 * same connection get their own answers first, and nothing is put into one that is on its way.
 */
export function respondToClientError(
  error: Error & { code?: string },
  socket: Socket,
  { requests, restMs }: { requests: OpenRequests; restMs: number },
): void {
  if (socket.destroyed || isLeaving(socket)) return;
  if (error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const open = requests.of(socket);
  const whole = open.filter(({ request }) => request.complete);
  if (whole.length > 0) {
    whole.at(-1)?.response.once('finish', () => leave(socket, restMs));
  } else if (open.some(({ response }) => response.headersSent)) {
    socket.destroy(error);
  } else {
    if (socket.writable) socket.write(rawResponse(answers[error.code ?? ''] ?? malformed));
    leave(socket, restMs);
  }
}
