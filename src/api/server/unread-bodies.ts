import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Unread bodies up to this size, in bytes, are read and discarded, so that the connection can serve the next request. */
const maxDiscardBytes = 64 * 1024;

const awaitingContinue = new WeakMap<IncomingMessage, ServerResponse>();
const closing = new WeakSet<Socket>();

/** Records that the client waits for `100 Continue` before it sends the body. */
export function markAwaitingContinue(request: IncomingMessage, response: ServerResponse): void {
  awaitingContinue.set(request, response);
}

/** Sends `100 Continue` to a client that waits for it. Call before reading a body. */
export function sendContinue(request: object): void {
  const response = awaitingContinue.get(request as IncomingMessage);
  if (!response) return;
  awaitingContinue.delete(request as IncomingMessage);
  if (!response.headersSent) response.writeContinue();
}

/** Whether a response sent now must be the connection's last, because the rest of the body precedes the next request. */
export function mustCloseAfterResponse(request: IncomingMessage): boolean {
  if (request.complete || !hasBody(request)) return false;
  const declared = Number(request.headers['content-length'] ?? Number.NaN);
  return awaitingContinue.has(request) || !(declared <= maxDiscardBytes);
}

/** Whether the connection is being closed, so that nothing more that arrives on it is served. */
export function isClosing(socket: Socket): boolean {
  return closing.has(socket);
}

/** Discards the rest of the body after the response; closes the connection if that takes longer than `discardMs`. */
export function limitUnreadBody(request: IncomingMessage, response: ServerResponse, discardMs: number): void {
  if (!hasBody(request)) return;
  response.once('finish', () => {
    if (request.complete) return;
    const { socket } = request;
    request.resume();
    const timer = setTimeout(() => {
      if (!request.complete) socket.destroy();
    }, discardMs);
    // Also emitted when the connection closes.
    request.once('close', () => clearTimeout(timer));
  });
}

/**
 * Closes the connection so that the client can still read the last response: closing a socket with unread bytes resets the
 * connection, and the response may be lost. Discards input until the client closes too or `request` is complete, for at most
 * `discardMs`.
 */
export function closeGracefully(socket: Socket, discardMs: number, request?: IncomingMessage): void {
  if (closing.has(socket)) return;
  closing.add(socket);
  const timer = setTimeout(() => socket.destroy(), discardMs);
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
