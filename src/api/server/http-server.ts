import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Config } from '../../shared/platform/config/config.ts';
import { respondToClientError } from './client-errors.ts';
import type { ConnectionLimits } from './connection-limits.ts';
import { OpenRequests } from './open-requests.ts';
import type { TlsFiles } from './tls-files.ts';
import { boundRest, holdBody, isLeaving, leave } from './unread-bodies.ts';

/** Headers that one request may have; Node would leave out what is beyond 2,000 without a word. */
const maxHeaders = 200;

/** After so many requests a connection is closed, so that clients spread over replicas that have come since. */
const maxRequestsPerConnection = 10_000;

/** How long a client may read nothing of an answer that waits for it, in ms. */
const stalledReaderMs = 120_000;

/** How long a body that nobody reads may go on after its answer, in ms. */
const longestRestMs = 5_000;

/** Connections without a request are closed so long after the server has stopped to listen, in ms. */
const lastWordMs = 1_000;

/** How often connections are looked at for heads that are too slow, in ms, for a limit of `headMs`. */
const checkEveryMs = (headMs: number): number => Math.min(Math.max(Math.floor(headMs / 4), 50), 5_000);

/**
 * The server below the app: it bounds what a client can do before the app sees a request, and how long it may take for what
 * the app does not read. `tls` null: plain HTTP.
 */
export function createHttpServer(
  handler: RequestListener,
  { front, limits, tls }: { front: Config['front']; limits: ConnectionLimits; tls: TlsFiles | null },
): Server {
  const { headMs, idleMs } = front;
  const restMs = Math.min(longestRestMs, headMs);
  const options = {
    headersTimeout: headMs,
    // By size: see `unbroken`, and `boundRest` for what nobody reads.
    requestTimeout: 0,
    keepAliveTimeout: idleMs,
    connectionsCheckingInterval: checkEveryMs(headMs),
    // Asked for here: Node's own refusal is none that a client of ours could read.
    requireHostHeader: false,
  };
  const server = tls
    ? createTlsServer({ ...options, ...tls.secureContext(), handshakeTimeout: headMs })
    : createServer(options);
  server.maxRequestsPerSocket = maxRequestsPerConnection;
  server.timeout = stalledReaderMs;
  if (tls) tls.serve(server as ReturnType<typeof createTlsServer>);

  const requests = new OpenRequests();
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    if (isLeaving(request.socket)) return;
    requests.add(request, response);
    boundRest(request, response, restMs);
    if (request.rawHeaders.length > 2 * maxHeaders)
      refuse(response, 431, `The request has more than ${maxHeaders} headers`);
    else if (request.headers.host === undefined && request.httpVersion === '1.1')
      refuse(response, 400, 'The request has no Host header');
    else handler(request, response);
  };
  server.on('request', serve);
  server.on('checkContinue', (request, response) => {
    holdBody(request, response);
    serve(request, response);
  });
  server.on('checkExpectation', (request, response) => {
    requests.add(request, response);
    boundRest(request, response, restMs);
    refuse(response, 417, 'The only expectation that this server supports is 100-continue');
  });
  const secured = new WeakSet<Socket>();
  const sockets = new Set<Socket>();
  server.on('clientError', (error: Error & { code?: string }, stream) => {
    const socket = stream as Socket;
    // What did not come to a session cannot be answered.
    if (tls && !secured.has(socket)) socket.destroy();
    else respondToClientError(error, socket, { requests, restMs });
  });
  server.on('timeout', (socket: Socket) => {
    // A call that waits for its job is silent too.
    if (requests.of(socket).length === 0 || socket.writableLength > 0) socket.destroy();
  });

  server.on(tls ? 'secureConnection' : 'connection', (socket: Socket) => {
    secured.add(socket);
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    const destroySoon = socket.destroySoon.bind(socket);
    // Called by Node when the last answer is out.
    socket.destroySoon = () => {
      const last = requests.lastOf(socket);
      if (!last || last.complete) destroySoon();
      else leave(socket, restMs, last);
    };
  });
  guardConnections(server, (socket) => limits.admit(socket, { inWords: tls === null }));
  const close = server.close.bind(server);
  server.close = (callback) => {
    if (!server.listening) return close(callback);
    const timer = setInterval(() => {
      for (const socket of sockets) if (requests.of(socket).length === 0) socket.destroy();
    }, lastWordMs);
    server.once('close', () => clearInterval(timer));
    return close(callback);
  };
  return server;
}

/** Lets `admits` decide on each connection before the server knows of it. */
function guardConnections(server: Server, admits: (socket: Socket) => boolean): void {
  const listeners = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    if (!admits(socket)) return;
    for (const listener of listeners) listener.call(server, socket);
  });
}

function refuse(response: ServerResponse, code: number, message: string): void {
  const body = JSON.stringify({ code, message });
  const headers = { 'content-type': 'application/json; charset=utf-8', 'content-length': Buffer.byteLength(body) };
  response.writeHead(code, { ...headers, connection: 'close' }).end(body);
}
