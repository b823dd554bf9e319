import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from '@jest/globals';
import { securityHeaders } from '../../src/shared/platform/http/security-headers.ts';
import { digestRows } from './row-digests.ts';
import type { TestApp } from './test-app.ts';

const waitLimitMs = 60_000;

/** A response as received over the wire. */
export interface WireAnswer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
  readonly json: any;
}

/** The responses are in `answers` once they arrive. */
export interface WireConnection {
  write(data: string | Buffer): Promise<void>;
  /** The next response; null when the server closes the connection without one. */
  answer(limitMs?: number): Promise<WireAnswer | null>;
  /** Such as 100; fails when something else arrives. */
  interim(): Promise<number>;
  /** Breaks the connection, like a killed client. */
  destroy(): void;
  /** The other direction stays open. */
  end(): void;
}

/** A test app that listens on its own port, for tests that need real sockets. */
export class WireServer {
  readonly app: TestApp;
  readonly port: number;

  private constructor(app: TestApp, port: number) {
    this.app = app;
    this.port = port;
  }

  static async listen(app: TestApp): Promise<WireServer> {
    await app.app.listen({ host: '127.0.0.1', port: 0 });
    const address = app.app.server.address();
    if (typeof address !== 'object' || address === null) throw new Error('The server has no port');
    return new WireServer(app, address.port);
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** `stays`: the client leaves its own direction open when the server has closed the other. */
  connect({ stays = false } = {}): WireConnection {
    const socket = connect({ host: '127.0.0.1', port: this.port, allowHalfOpen: stays });
    return new SocketConnection(socket);
  }

  /** One request, written unchanged on its own connection. */
  async send(...parts: (string | Buffer)[]): Promise<WireAnswer | null> {
    const connection = this.connect();
    try {
      for (const part of parts) await connection.write(part);
      return await connection.answer();
    } finally {
      connection.destroy();
    }
  }

  /** Closes the connection afterwards. `headers` are added to Host, Connection and Content-Length. */
  request(
    method: string,
    target: string,
    options: { headers?: Readonly<Record<string, string>>; body?: string | Buffer; length?: number | null } = {},
  ): Promise<WireAnswer | null> {
    const body = Buffer.from(options.body ?? '');
    return this.send(head(method, target, { ...options, length: lengthOf(options, body) }), body);
  }
}

function lengthOf(options: { body?: string | Buffer; length?: number | null }, body: Buffer): number | null {
  if (options.length !== undefined) return options.length;
  return options.body === undefined ? null : body.length;
}

/** Head of a request, with a Content-Length unless `length` is null. */
export function head(
  method: string,
  target: string,
  options: { headers?: Readonly<Record<string, string>>; length?: number | null },
): string {
  const lines = [`${method} ${target} HTTP/1.1`, 'Host: localhost', 'Connection: close'];
  for (const [name, value] of Object.entries(options.headers ?? {})) lines.push(`${name}: ${value}`);
  if (options.length !== undefined && options.length !== null) lines.push(`Content-Length: ${options.length}`);
  return `${lines.join('\r\n')}\r\n\r\n`;
}

class SocketConnection implements WireConnection {
  readonly #socket: Socket;
  #received: Buffer[] = [];
  #closed = false;
  #wake: () => void = () => {};

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (chunk) => {
      this.#received.push(chunk);
      this.#wake();
    });
    // A server that rejects a body may reset the connection while we are still writing.
    socket.on('error', () => {});
    socket.on('close', () => {
      this.#closed = true;
      this.#wake();
    });
  }

  async write(data: string | Buffer): Promise<void> {
    if (this.#closed) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const done = (): void => resolve();
    this.#socket.once('close', done);
    this.#socket.write(data, 'latin1', done);
    await promise;
    this.#socket.off('close', done);
  }

  async answer(limitMs = waitLimitMs): Promise<WireAnswer | null> {
    const deadline = Date.now() + limitMs;
    for (;;) {
      const received = Buffer.concat(this.#received);
      const taken = takeAnswer(received, this.#closed);
      this.#received = [taken ? received.subarray(taken.bytes) : received];
      if (taken) return taken.answer;
      if (this.#closed) return null;
      const left = deadline - Date.now();
      if (left <= 0) throw new Error(`No answer within ${limitMs} ms; so far ${received.toString('latin1', 0, 1000)}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      // Data that arrives at once is parsed at once.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async interim(): Promise<number> {
    const deadline = Date.now() + waitLimitMs;
    for (;;) {
      const received = Buffer.concat(this.#received);
      const [whole, status] = /^HTTP\/1\.1 (1\d\d)[^\r]*\r\n\r\n/.exec(received.toString('latin1', 0, 200)) ?? [];
      if (whole !== undefined) {
        this.#received = [received.subarray(whole.length)];
        return Number(status);
      }
      if (received.length >= 200 || this.#closed || Date.now() > deadline)
        throw new Error(`No interim answer: ${received.toString('latin1', 0, 200)}`);
      await sleep(5);
    }
  }

  destroy(): void {
    this.#socket.destroy();
  }

  end(): void {
    this.#socket.end();
  }
}

/** Returns null when the response is not complete yet. */
function takeAnswer(received: Buffer, closed: boolean): { answer: WireAnswer; bytes: number } | null {
  const headEnd = received.indexOf('\r\n\r\n');
  if (headEnd < 0) return null;
  const [statusLine, ...lines] = received.subarray(0, headEnd).toString('latin1').split('\r\n');
  const headers = new Map(
    lines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
    }),
  );
  const status = Number(statusLine?.split(' ')[1]);
  const rest = received.subarray(headEnd + 4);
  let body: Buffer;
  let bytes: number;
  if (headers.get('transfer-encoding') === 'chunked') {
    const chunks = takeChunks(rest);
    if (!chunks) return null;
    body = chunks.body;
    bytes = chunks.bytes;
  } else if (headers.has('content-length') || status === 204) {
    bytes = status === 204 ? 0 : Number(headers.get('content-length'));
    if (rest.length < bytes) return null;
    body = rest.subarray(0, bytes);
  } else {
    if (!closed) return null;
    body = rest;
    bytes = rest.length;
  }
  const text = body.toString('utf8');
  return {
    bytes: headEnd + 4 + bytes,
    answer: {
      status,
      headers,
      body: text,
      get json() {
        return JSON.parse(text);
      },
    },
  };
}

function takeChunks(rest: Buffer): { body: Buffer; bytes: number } | null {
  const parts: Buffer[] = [];
  let at = 0;
  for (;;) {
    const lineEnd = rest.indexOf('\r\n', at);
    if (lineEnd < 0) return null;
    const size = Number.parseInt(rest.subarray(at, lineEnd).toString('latin1'), 16);
    const end = lineEnd + 2 + size;
    if (rest.length < end + 2) return null;
    if (size === 0) return { body: Buffer.concat(parts), bytes: end + 2 };
    parts.push(rest.subarray(lineEnd + 2, end));
    at = end + 2;
  }
}

/** JSON whose `code` is the status, as the CLI expects. */
export function expectRejection(answer: WireAnswer | null, status: number | readonly number[]): void {
  const statuses = typeof status === 'number' ? [status] : status;
  if (answer === null) throw new Error(`The connection was closed without an answer instead of ${statuses.join('/')}`);
  expect({ status: answer.status, body: answer.body }).toEqual({
    status: statuses.includes(answer.status) ? answer.status : statuses,
    body: expect.any(String),
  });
  expect(answer.headers.get('content-type')).toMatch(/^application\/json/);
  expect(Object.fromEntries(answer.headers)).toMatchObject(securityHeaders);
  expect(answer.json).toEqual({ code: answer.status, message: expect.stringMatching(/./) });
  // Reveals nothing internal: no stack trace, no SQL, no path.
  expect(answer.json.message).not.toMatch(/node_modules|\bat .*\.ts|select |insert into/);
}

/** No row changed, no body is left in the payload store, and the server is well. */
export async function expectNothingChanged<T>(server: WireServer, act: () => Promise<T>): Promise<T> {
  const before = await digestRows(server.app);
  const result = await act();
  await settled(server.app);
  expect(await digestRows(server.app)).toEqual(before);
  const health = await server.request('GET', '/healthz');
  expect(health?.status).toBe(200);
  return result;
}

/** No body and no job is under way. */
export async function settled(app: TestApp): Promise<void> {
  const deadline = Date.now() + waitLimitMs;
  const busy = () => {
    const { waiting, active } = app.context.dispatcher.state();
    return app.context.payloads.bytesHeld() > 0 || waiting > 0 || active > 0;
  };
  while (busy()) {
    if (Date.now() > deadline)
      throw new Error(
        `Not settled: ${app.context.payloads.bytesHeld()} bytes held, ${JSON.stringify(app.context.dispatcher.state())}`,
      );
    await sleep(10);
  }
}
