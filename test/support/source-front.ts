import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestApp } from './test-app.ts';

/** False: the server behind answers. */
export type Intercept = (call: IncomingMessage, response: ServerResponse) => boolean;

/** A real HTTP server that an import reads from. */
export interface SourceFront extends AsyncDisposable {
  readonly url: string;
  /** Calls so far, as `GET /path`. */
  readonly calls: readonly string[];
  intercept: Intercept;
}

/** The front may answer for the app. */
export async function listenBehindFront(app: TestApp): Promise<SourceFront> {
  const behind = new URL(await app.app.listen({ host: '127.0.0.1', port: 0 }));
  return startFront((call, response) => {
    const target = { host: behind.hostname, port: behind.port, path: call.url, method: call.method };
    const sent = request({ ...target, headers: call.headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    sent.on('error', () => response.destroy());
    call.pipe(sent);
  });
}

/** A server with these answers. */
export async function startFront(
  answer: (call: IncomingMessage, response: ServerResponse) => void,
): Promise<SourceFront> {
  const calls: string[] = [];
  const server: Server = createServer((call, response) => {
    calls.push(`${call.method} ${call.url}`);
    if (!front.intercept(call, response)) answer(call, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const front: SourceFront = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    intercept: () => false,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return front;
}

/** Answers with JSON. */
export function sendJson(
  response: ServerResponse,
  body: unknown,
  status = 200,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}
