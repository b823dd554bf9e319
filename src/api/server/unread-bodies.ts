import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** What is left of a body up to this size is read and dropped, so that the connection can serve the next request; in bytes. */
const smallRestBytes = 64 * 1024;

const awaitingContinue = new WeakMap<IncomingMessage, ServerResponse>();
const leaving = new WeakSet<Socket>();

/** Notes that the client waits for word (`Expect: 100-continue`) before it sends the body. */
export function holdBody(request: IncomingMessage, response: ServerResponse): void {
  awaitingContinue.set(request, response);
}

/** To be called before a body is read: tells a client that waits for it to go on. */
export function inviteBody(request: object): void {
  const response = awaitingContinue.get(request as IncomingMessage);
  if (!response) return;
  awaitingContinue.delete(request as IncomingMessage);
  if (!response.headersSent) response.writeContinue();
}

/** Whether an answer that is given now must be the connection's last, since the rest of the body stands before the next request. */
export function mustClose(request: IncomingMessage): boolean {
  if (request.complete || !hasBody(request)) return false;
  const declared = Number(request.headers['content-length'] ?? Number.NaN);
  return awaitingContinue.has(request) || !(declared <= smallRestBytes);
}

/** Whether the connection ends, and nothing that still comes on it is to be served. */
export function isLeaving(socket: Socket): boolean {
  return leaving.has(socket);
}

/** Sees to it that after the answer the rest of the body is dropped within `restMs`, or the connection closed. */
export function boundRest(request: IncomingMessage, response: ServerResponse, restMs: number): void {
  if (!hasBody(request)) return;
  response.once('finish', () => {
    if (request.complete) return;
    const { socket } = request;
    request.resume();
    const timer = setTimeout(() => {
      if (!request.complete) socket.destroy();
    }, restMs);
    // Comes with the end of the connection, too.
    request.once('close', () => clearTimeout(timer));
  });
}

/**
 * Ends the connection so that the client can read what was sent last: a socket that is closed with bytes unread resets the
 * connection, and the answer may be lost. What comes is dropped until the client closes too or `request` is all there, for
 * `restMs` at most.
 */
export function leave(socket: Socket, restMs: number, request?: IncomingMessage): void {
  if (leaving.has(socket)) return;
  leaving.add(socket);
  const timer = setTimeout(() => socket.destroy(), restMs);
  socket.once('close', () => clearTimeout(timer));
  if (socket.writable) socket.end();
  if (request) {
    const destroy = (): void => void (socket.writableFinished ? socket.destroy() : socket.once('finish', destroy));
    request.once('end', destroy);
    request.resume();
  }
  socket.resume();
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}
