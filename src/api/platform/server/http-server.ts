import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { AppContext } from '../../../shared/context.ts';
import type { Config } from '../../../shared/platform/config/config.ts';
import { securityHeaders } from '../../../shared/platform/http/security-headers.ts';
import type { ErrorResponse } from '../protocol/errors.ts';
import { ConnectionLimits } from './connection-limits.ts';
import { OpenRequests } from './open-requests.ts';
import { rawResponse } from './raw-response.ts';
import { TlsFiles } from './tls-files.ts';
import {
  closeGracefully,
  isClosing,
  limitUnreadBody,
  markAwaitingContinue,
  respondAfterBody,
} from './unread-bodies.ts';

/** Node would silently drop headers beyond 2,000. */
const maxHeaders = 200;

/** Clients then spread to replicas that were added later. */
const maxRequestsPerConnection = 10_000;

/** How long a client may read nothing of a pending response, in ms. */
const stalledReaderMs = 120_000;

/** How long an unread body may continue after its response at most, in ms. */
const maxDiscardMs = 5_000;

/**
 * After this silence, in ms, TCP checks that the client is alive. A call may wait for hours without a byte; without the check, a client
 * lost without closing its connection would get its turn.
 */
const askAliveMs = 30_000;

/** Interval of closing connections without a request once the server has stopped listening, in ms. */
const closeIdleEveryMs = 1_000;

/** How often connections are checked for late headers. */
const checkEveryMs = (headMs: number): number => Math.min(Math.max(Math.floor(headMs / 4), 50), 5_000);

/**
 * Limits what a client can do before the app sees a request, and how long a client may take to send data that the app does not read. Plain
 * HTTP if `tls` is null.
 */
function createHttpServer(
  handler: RequestListener,
  { front, limits, tls }: { front: Config['front']; limits: ConnectionLimits; tls: TlsFiles | null },
): Server {
  const { headMs, idleMs } = front;
  const discardMs = Math.min(maxDiscardMs, headMs);
  const options = {
    headersTimeout: headMs,
    // The time limit depends on the size: see `checkedBody`, and `limitUnreadBody` for bodies that nobody reads.
    requestTimeout: 0,
    keepAliveTimeout: idleMs,
    keepAlive: true,
    keepAliveInitialDelay: askAliveMs,
    connectionsCheckingInterval: checkEveryMs(headMs),
    // Checked in `serve`: our clients could not parse Node's own error response.
    requireHostHeader: false,
  };
  const server = tls
    ? createTlsServer({ ...options, ...tls.secureContext(), handshakeTimeout: headMs })
    : createServer(options);
  server.maxRequestsPerSocket = maxRequestsPerConnection;
  server.timeout = stalledReaderMs;
  if (tls) tls.attach(server as ReturnType<typeof createTlsServer>);

  const requests = new OpenRequests();
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    if (isClosing(request.socket)) return;
    requests.add(request, response);
    limitUnreadBody(request, response, discardMs);
    if (request.rawHeaders.length > 2 * maxHeaders)
      refuse(request, response, 431, `The request has more than ${maxHeaders} headers`);
    else if (request.headers.host === undefined && request.httpVersion === '1.1')
      refuse(request, response, 400, 'The request has no Host header');
    else handler(request, response);
  };
  server.on('request', serve);
  server.on('checkContinue', (request, response) => {
    markAwaitingContinue(request, response);
    serve(request, response);
  });
  server.on('checkExpectation', (request, response) => {
    requests.add(request, response);
    limitUnreadBody(request, response, discardMs);
    refuse(request, response, 417, 'The only expectation that this server supports is 100-continue');
  });
  const secured = new WeakSet<Socket>();
  const sockets = new Set<Socket>();
  server.on('clientError', (error: Error & { code?: string }, stream) => {
    const socket = stream as Socket;
    // Without a TLS session, no response can be sent.
    if (tls && !secured.has(socket)) socket.destroy();
    else respondToClientError(error, socket, { requests, discardMs });
  });
  server.on('timeout', (socket: Socket) => {
    // A connection is silent while its call waits for a job, too.
    if (requests.of(socket).length === 0 || socket.writableLength > 0) socket.destroy();
  });

  server.on(tls ? 'secureConnection' : 'connection', (socket: Socket) => {
    secured.add(socket);
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    const destroySoon = socket.destroySoon.bind(socket);
    // Node calls this after the last response of the connection.
    socket.destroySoon = () => {
      const last = requests.lastOf(socket);
      if (!last || last.complete) destroySoon();
      else closeGracefully(socket, discardMs, last);
    };
  });
  guardConnections(server, (socket) => limits.admit(socket, { canRespond: tls === null }));
  const close = server.close.bind(server);
  server.close = (callback) => {
    if (!server.listening) return close(callback);
    const timer = setInterval(() => {
      for (const socket of sockets) if (requests.of(socket).length === 0) socket.destroy();
    }, closeIdleEveryMs);
    server.once('close', () => clearInterval(timer));
    return close(callback);
  };
  return server;
}

function guardConnections(server: Server, admits: (socket: Socket) => boolean): void {
  const listeners = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    if (!admits(socket)) return;
    for (const listener of listeners) listener.call(server, socket);
  });
}

function refuse(request: IncomingMessage, response: ServerResponse, code: number, message: string): void {
  const body = JSON.stringify({ code, message });
  const headers = { 'content-type': 'application/json; charset=utf-8', 'content-length': Buffer.byteLength(body) };
  respondAfterBody(request, () => {
    response.writeHead(code, { ...securityHeaders, ...headers, connection: 'close' }).end(body);
  });
}

const errorResponses: Readonly<Record<string, ErrorResponse>> = {
  ERR_HTTP_REQUEST_TIMEOUT: { code: 408, message: 'The request was not complete in time' },
  HPE_HEADER_OVERFLOW: { code: 431, message: 'The URL and the headers of the request are too large' },
};
const malformedRequest: ErrorResponse = { code: 400, message: 'This is not a valid HTTP request' };

/**
 * Responds to input that never became a request, in the format of all other errors, and closes the connection. Earlier requests on it get
 * their responses first, and nothing is inserted into a response that is being sent.
 */
function respondToClientError(
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

/** The servers share their connection limits. Throws TlsFilesError. */
export function createFront(context: AppContext): (handler: RequestListener) => Server {
  const { config, lifecycle, logger, metrics } = context;
  const limits = new ConnectionLimits(config, { logger, metrics });
  metrics.gauge('holdfast_connections', 'Open client connections.', () => limits.open);
  const tls = config.front.tls && new TlsFiles(config.front.tls, { logger });
  if (tls) {
    lifecycle.onClose('stores', 'certificate', async () => tls.close());
    metrics.gauge(
      'holdfast_tls_certificate_expiry_seconds',
      'Expiry of the certificate in use, in seconds since 1970.',
      () => tls.expiresAt(),
    );
  }
  return (handler) => createHttpServer(handler, { front: config.front, limits, tls });
}
