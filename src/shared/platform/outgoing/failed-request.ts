import type { ClientRequest } from 'node:http';

/** Interim responses that a server may send before the final one. */
const maxInterim = 16;

/**
 * Calls `fail` if a request ends without a response, possibly more than once, and possibly after a response. Node reports no error if the
 * server switches protocols, after which neither limits nor signals end the request. Node also reads interim responses without end.
 */
export function onFailure(request: ClientRequest, fail: (error: Error) => void): void {
  let isAnswered = false;
  let interim = 0;
  request.on('error', fail);
  request.on('response', () => {
    isAnswered = true;
  });
  request.on('information', () => {
    if (++interim > maxInterim) request.destroy(new Error('the server sends too many interim responses'));
  });
  request.on('upgrade', (_response, socket) => {
    socket.destroy();
    fail(new Error('the server switches protocols'));
  });
  request.on('close', () => {
    if (!isAnswered) fail(new Error('the server sent no response'));
  });
}
