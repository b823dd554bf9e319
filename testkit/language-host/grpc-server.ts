import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';

/** A streaming call has several messages. A call stays open until they end. */
export type Method = (request: Buffer) => AsyncIterable<Buffer> | Iterable<Buffer>;

const unimplemented = '12';
export const headerBytes = 5;

/** Serves gRPC methods by their name, such as `Analyze`. Returns the port. */
export async function serveGrpc(methods: Readonly<Record<string, Method>>): Promise<number> {
  const server = createServer();
  server.on('stream', (stream, headers) => void answer(stream, headers, methods).catch(() => stream.close()));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

async function answer(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  methods: Readonly<Record<string, Method>>,
): Promise<void> {
  stream.on('error', () => {});
  const method = methods[(headers[':path'] ?? '').split('/').at(-1) ?? ''];
  const base = { ':status': 200, 'content-type': 'application/grpc' };
  if (!method) {
    stream.respond({ ...base, 'grpc-status': unimplemented }, { endStream: true });
    return;
  }
  const parts: Buffer[] = [];
  for await (const part of stream) parts.push(part as Buffer);
  stream.respond(base, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  for await (const message of method(Buffer.concat(parts).subarray(headerBytes))) stream.write(framed(message));
  stream.end();
}

/** The message with the header of gRPC. */
export function framed(message: Buffer): Buffer {
  const header = Buffer.alloc(headerBytes);
  header.writeUInt32BE(message.length, 1);
  return Buffer.concat([header, message]);
}
