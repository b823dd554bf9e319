import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream';

/** Requests to an S3 server by kind, and the bytes of their bodies. */
export interface S3Traffic {
  /** PUT, POST and LIST: the requests of the dearer price class. */
  readonly writes: number;
  /** GET and HEAD. */
  readonly reads: number;
  /** Free of charge. */
  readonly deletes: number;
  readonly sentBytes: number;
  readonly receivedBytes: number;
}

/** Counts what passes on its way to an S3 server. Requests are forwarded as they are, so their signatures stay valid. */
export class S3Meter implements AsyncDisposable {
  readonly #server = createServer((incoming, outgoing) => {
    const body = this.#count(incoming);
    const { hostname, port } = new URL(this.#target);
    const forwarded = request(
      { hostname, port, method: incoming.method, path: incoming.url, headers: incoming.headers },
      (response) => {
        outgoing.writeHead(response.statusCode ?? 502, response.headers);
        response.on('data', (chunk: Buffer) => (this.#traffic.receivedBytes += chunk.length));
        pipeline(response, outgoing, () => {});
      },
    );
    forwarded.on('error', () => outgoing.destroy());
    pipeline(body, forwarded, () => {});
  });
  #target = '';
  #traffic = { writes: 0, reads: 0, deletes: 0, sentBytes: 0, receivedBytes: 0 };

  static async start(): Promise<S3Meter> {
    const meter = new S3Meter();
    await new Promise<void>((resolve) => meter.#server.listen(0, '127.0.0.1', resolve));
    return meter;
  }

  /** The endpoint that counts. */
  inFrontOf(endpoint: string): string {
    this.#target = endpoint;
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  read(): S3Traffic {
    return { ...this.#traffic };
  }

  #count(incoming: IncomingMessage): IncomingMessage {
    const { method, url = '' } = incoming;
    const isList = method === 'GET' && url.includes('list-type=');
    if (method === 'DELETE') this.#traffic.deletes++;
    else if (method === 'PUT' || method === 'POST' || isList) this.#traffic.writes++;
    else this.#traffic.reads++;
    incoming.on('data', (chunk: Buffer) => (this.#traffic.sentBytes += chunk.length));
    return incoming;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
