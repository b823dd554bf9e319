import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseAllowList } from '../../src/shared/platform/outgoing/address-rules.ts';
import { Outgoing } from '../../src/shared/platform/outgoing/outgoing.ts';

/** A request that a receiver has got. */
export interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A status, or a status with a body. */
type Answer = number | { readonly status: number; readonly body?: string; readonly headers?: Record<string, string> };

/** A server outside that gets what Holdfast sends. */
export class Receiver implements AsyncDisposable {
  readonly received: Received[] = [];
  /** Each request is answered when the promise settles. */
  answer: (request: Received) => Answer | Promise<Answer> = () => 200;
  /** Most requests at once. */
  most = 0;
  readonly #server: Server;
  #open = 0;

  private constructor(server: Server) {
    this.#server = server;
    server.on('request', (request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', async () => {
        const { headers, method = '', url: path = '' } = request;
        const got = { method, path, headers, body: Buffer.concat(chunks).toString() };
        this.received.push(got);
        this.most = Math.max(this.most, ++this.#open);
        const answer = await this.answer(got);
        this.#open--;
        const { status, body = '', headers: more = {} } = typeof answer === 'number' ? { status: answer } : answer;
        response.writeHead(status, more).end(body);
      });
    });
  }

  static async start(): Promise<Receiver> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new Receiver(server);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Bodies that were received, parsed. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape.
  get bodies(): any[] {
    return this.received.map(({ body }) => JSON.parse(body));
  }

  /** Calls of a server whose operator allows this receiver. */
  outgoing(): Outgoing {
    const parsed = parseAllowList(this.url);
    if ('wrong' in parsed) throw new Error(parsed.wrong);
    return new Outgoing({ allow: parsed.list });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
