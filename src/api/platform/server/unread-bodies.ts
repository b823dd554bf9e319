import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Bytes of an unread body that are received and discarded before the response is sent. */
const maxDiscardBytes = 32 * 1024 * 1024;

/** A function that starts the clock at its first call. */
const deadlines = new WeakMap<IncomingMessage, () => number>();
const awaitingContinue = new WeakMap<IncomingMessage, ServerResponse>();
const closing = new WeakSet<Socket>();

export function markAwaitingContinue(request: IncomingMessage, response: ServerResponse): void {
  awaitingContinue.set(request, response);
}

/** Does nothing unless the client waits for `100 Continue`. Call before reading a body. */
export function sendContinue(request: object): void {
  const response = awaitingContinue.get(request as IncomingMessage);
  if (!response) return;
  awaitingContinue.delete(request as IncomingMessage);
  if (!response.headersSent) response.writeContinue();
}

/** The rest of the body would precede the next request. */
export function mustCloseAfterResponse(request: IncomingMessage): boolean {
  return !request.complete && (hasBody(request) || request.readableDidRead);
}

/**
 * Calls `respond` once the body has arrived, and discards the unread rest. A proxy that gets a response while it sends the body may report
 * a broken connection instead (golang/go#40747). Does not wait for a client that asked whether to send the body, for more than 32 MiB, or
 * for longer than `limitUnreadBody` permits.
 */
export function respondAfterBody(request: IncomingMessage, respond: () => void): void {
  const deadline = deadlines.get(request);
  const declared = Number(request.headers['content-length'] ?? 0);
  const waits =
    deadline && mustCloseAfterResponse(request) && !awaitingContinue.has(request) && declared <= maxDiscardBytes;
  if (!waits || request.destroyed || request.readableEnded) {
    respond();
    return;
  }
  let bytes = 0;
  const count = (chunk: Buffer): void => {
    bytes += chunk.length;
    if (bytes > maxDiscardBytes) end();
  };
  const end = (): void => {
    clearTimeout(timer);
    request.off('data', count).off('end', end).off('close', end);
    request.resume();
    respond();
  };
  const timer = setTimeout(end, Math.max(deadline() - performance.now(), 0));
  request.on('data', count).once('end', end).once('close', end);
  request.resume();
}

/** Further input on the connection is not served. */
export function isClosing(socket: Socket): boolean {
  return closing.has(socket);
}

/** Limits the total time before and after the response. */
export function limitUnreadBody(request: IncomingMessage, response: ServerResponse, discardMs: number): void {
  if (!hasBody(request)) return;
  let deadline: number | undefined;
  const startedDeadline = (): number => {
    deadline ??= performance.now() + discardMs;
    return deadline;
  };
  deadlines.set(request, startedDeadline);
  response.once('finish', () => {
    if (request.complete) return;
    const { socket } = request;
    request.resume();
    const timer = setTimeout(
      () => {
        if (!request.complete) socket.destroy();
      },
      Math.max(startedDeadline() - performance.now(), 0),
    );
    // Also emitted when the connection closes.
    request.once('close', () => clearTimeout(timer));
  });
}

/**
 * Closes the connection so that the client can still read the last response: closing a socket with unread bytes resets the connection, and
 * the response may be lost. Discards input until the client closes too or `request` is complete, for at most `discardMs`.
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
